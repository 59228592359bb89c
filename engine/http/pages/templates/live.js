// Reloads the page's content when the live feed reports a relevant event. Without this script the page is static.
"use strict";

const PAUSE_MS = 300; // events within this time cause one reload

const { feed, types } = document.body.dataset;
const status = document.getElementById("live");
let isStale = false;
let isBusy = false;

async function look() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(found.querySelector("main"));
}

async function refresh() {
  isStale = true;
  if (isBusy) return;
  isBusy = true;
  while (isStale) {
    await new Promise((wake) => setTimeout(wake, PAUSE_MS));
    isStale = false;
    await look().catch(() => {}); // the feed reconnects when the server is back
  }
  isBusy = false;
}

function say(word) {
  status.textContent = word;
  status.className = word;
}

if (feed) {
  const source = new EventSource(feed);
  for (const type of types.split(" ")) source.addEventListener(type, refresh);
  source.addEventListener("open", () => {
    say("live");
    refresh();
  });
  source.addEventListener("error", () => say("offline"));
}
