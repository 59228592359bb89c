"""Live watches of a replica through faults: a client lists once, then watches, and resumes after disconnects.

In the end each client must hold exactly what a list shows, document by document. A change that was lost,
repeated or sent under a wrong number shows as a difference, or as an event that cannot follow the events
before it.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import httpx
import msgspec

from tests.scaleout.processes import Api

Json = dict[str, Any]

PATHS: Final = (
    "/api/v1/configmaps",
    "/apis/apps/v1/deployments",
    "/apis/apps.karmada.io/v1alpha1/workloadrebalancers",
    "/apis/cluster.karmada.io/v1alpha1/clusters",
    "/apis/work.karmada.io/v1alpha1/works",
    "/apis/work.karmada.io/v1alpha2/resourcebindings",
)
"""All kinds that the load changes, and those that follow from them."""

_WATCH_S: Final = 5
_SILENT_S: Final = 60.0
"""A frozen replica keeps its connections open; the client gives up after this and connects again."""

_RETRY_S: Final = 0.1
_EQUAL_S: Final = 120.0
_OK: Final = 200


class Watcher(threading.Thread):
    """Holds the objects of one kind as the watch of one replica reports them, by namespace and name."""

    def __init__(self, api: Api, path: str) -> None:
        super().__init__(name=f"watch {api.name} {path}", daemon=True)
        self.stopping = threading.Event()
        self.events = 0
        self.cuts = 0
        self.wrong: list[str] = []
        self._api = api
        self._path = path
        self._objects: dict[str, Json] = {}
        self._version = ""

    def run(self) -> None:
        """List and watch until stopped, through all failures of the replica."""
        while not self.stopping.is_set():
            try:
                with _client(self._api) as client:
                    if not self._version:
                        self._version, self._objects = _listed(client, self._path)
                    while not self.stopping.is_set():
                        self._follow(client)
            except (httpx.HTTPError, msgspec.DecodeError, OSError):
                self.cuts += 1
                time.sleep(_RETRY_S)

    def differences(self) -> list[str]:
        """Compare with a list of the same replica; waits for events that are still on their way."""
        until_s = time.monotonic() + _EQUAL_S
        differing = [f"{self.name} has not listed yet"]
        while differing and time.monotonic() < until_s:
            with _client(self._api) as client:
                _, listed = _listed(client, self._path)
            differing = list(self._compared(listed))
            time.sleep(_RETRY_S)
        return [*self.wrong, *differing]

    def _compared(self, listed: dict[str, Json]) -> Iterator[str]:
        for name in sorted(listed.keys() | self._objects.keys()):
            watched, shown = self._objects.get(name), listed.get(name)
            if watched != shown:
                yield f"{self.name} {name}: watched {_version(watched)}, listed {_version(shown)}"

    def _follow(self, client: httpx.Client) -> None:
        parameters = {"watch": "1", "resourceVersion": self._version, "timeoutSeconds": _WATCH_S}
        with client.stream("GET", self._path, params=parameters) as response:
            if response.status_code != _OK:
                response.read()
                # 503 while the replica starts; any other status is an error, since the version is valid.
                if response.status_code not in (429, 503):
                    self.wrong.append(f"{self.name}: {response.status_code} {response.text[:200]}")
                time.sleep(_RETRY_S)
                return
            for line in response.iter_lines():
                self._take(msgspec.json.decode(line))

    def _take(self, event: Json) -> None:
        changed = event["object"]
        if event["type"] == "ERROR":
            self.wrong.append(f"{self.name}: {changed}")
            return
        name, version = _name(changed), str(changed["metadata"]["resourceVersion"])
        if int(version) < int(self._version):
            self.wrong.append(f"{self.name}: {event['type']} {name} under {version}, after {self._version}")
        if (name in self._objects) != (event["type"] != "ADDED"):
            self.wrong.append(
                f"{self.name}: {event['type']} {name} under {version}, known: {name in self._objects}"
            )
        self.events += 1
        self._version = version
        if event["type"] == "DELETED":
            self._objects.pop(name, None)
        else:
            self._objects[name] = _plain(changed)


def started(apis: Sequence[Api]) -> list[Watcher]:
    """Start a watcher for each kind and replica."""
    watchers = [Watcher(api, path) for api in apis for path in PATHS]
    for watcher in watchers:
        watcher.start()
    return watchers


def _client(api: Api) -> httpx.Client:
    """A client of the replica; it reads the address again, as each start may change it."""
    endpoint = msgspec.json.decode((api.data / "endpoint.json").read_bytes())
    return httpx.Client(
        base_url=endpoint["kube_url"],
        headers={"authorization": f"Bearer {endpoint['token']}"},
        timeout=_SILENT_S,
        verify=False,  # noqa: S501  # loopback
        trust_env=False,
    )


def _listed(client: httpx.Client, path: str) -> tuple[str, dict[str, Json]]:
    response = client.get(path)
    response.raise_for_status()
    body = msgspec.json.decode(response.content)
    return str(body["metadata"]["resourceVersion"]), {
        _name(document): _plain(document) for document in body["items"]
    }


def _plain(document: Json) -> Json:
    """A document without its type, which the items of a list leave out."""
    return {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}


def _name(document: Json) -> str:
    metadata = document["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _version(document: Json | None) -> str:
    return "nothing" if document is None else str(document["metadata"]["resourceVersion"])
