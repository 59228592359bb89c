// Reloads the page's content when the live feed reports a relevant event. Without this script the page is static.
"use strict";

const PAUSE_MS = 300; // events within this time cause one reload

const { feed, types } = document.body.dataset;
const status = document.getElementById("live");
let isStale = false;
let isBusy = false;

async function reload() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main"));
}

async function refresh() {
  isStale = true;
  if (isBusy) return;
  isBusy = true;
  while (isStale) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    isStale = false;
    await reload().catch(() => {}); // the feed reconnects when the server is back
  }
  isBusy = false;
}

function showStatus(text) {
  status.textContent = text;
  status.className = text;
}

if (feed) {
  const source = new EventSource(feed);
  for (const type of types.split(" ")) source.addEventListener(type, refresh);
  source.addEventListener("open", () => {
    showStatus("live");
    refresh();
  });
  source.addEventListener("error", () => showStatus("offline"));
}
