"""A Kubernetes API that plays a recording: lists, watches from a version, bookmarks, compaction, cut connections."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.agent.kubeconfigs import Access
from engine.bench import karmada_api
from engine.bench.karmada_api import status
from tests import recordings
from tests.recordings import Change

_POLL_S: Final = 0.005
_BOOKMARK_VERSIONS: Final = 1_000
"""A bookmark follows after so many versions of all kinds."""


class Playback:
    """The state of the API; changes up to ``shown`` are visible."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self.changes = list(changes)
        self.shown = 0
        self.compacted = 0
        self.lists = 0
        """The number of pages of lists, without requests for the newest version."""
        self.unserved: frozenset[str] = frozenset()
        """Kinds that discovery leaves out, as those of an API server that is down."""
        self.forgets_pages = False
        """Whether the pages of lists after the first one are answered 410."""
        self.refused = 0
        self.bookmarks = 0
        """The number of bookmarks that were sent."""
        self.faults: list[int] = []
        """Status codes of the next responses."""
        self._cuts = 0
        self._connections = 0

    @property
    def version(self) -> int:
        """The newest visible resourceVersion."""
        return self.changes[self.shown - 1].version if self.shown else 1

    def cut(self) -> None:
        """End all watches in the middle of a line."""
        self._cuts += 1

    def compact(self) -> None:
        """Forget the versions before the newest one: watches from them are answered 410."""
        self.compacted = self.version

    def restore(self, count: int, more: int) -> None:
        """Go back to the first changes, as to a backup of etcd; others, ``more`` of them shown, reuse versions."""
        later = self.changes[count : self.shown : 2] + self.changes[self.shown :]
        first = self.changes[count - 1].version + 1
        changed = (_with_version(change, version) for version, change in enumerate(later, first))
        self.changes = [*self.changes[:count], *changed]
        self.shown = count + more
        self.cut()

    def objects(self, kind: str) -> list[Change]:
        """The newest change of each existing object of a kind."""
        newest: dict[tuple[str, str, str], Change] = {}
        for change in self.changes[: self.shown]:
            if change.head.kind == kind:
                newest[change.object_key] = change
        return [change for change in newest.values() if not change.is_gone]

    def routes(self) -> list[Route]:
        return [
            Route("/api", self._core),
            Route("/apis", self._groups),
            Route("/{path:path}", self._collection),
        ]

    def _kinds(self) -> dict[str, str]:
        """The plural of each kind with its API version."""
        return {change.head.kind: change.head.api_version for change in self.changes}

    async def _core(self, _request: Request) -> Response:
        return JSONResponse(self._discovery(core=True))

    async def _groups(self, _request: Request) -> Response:
        return JSONResponse(self._discovery(core=False))

    def _discovery(self, *, core: bool) -> dict[str, object]:
        groups: dict[str, dict[str, list[dict[str, object]]]] = {}
        for kind, api_version in self._kinds().items():
            if kind in self.unserved:
                continue
            group, slash, version = api_version.rpartition("/")
            if bool(slash) == core:
                continue
            entry: dict[str, object] = {
                "resource": _plural(kind),
                "responseKind": {"group": group, "version": version, "kind": kind},
                "scope": "Namespaced",
                "singularResource": kind.lower(),
                "verbs": ["get", "list", "watch"],
            }
            groups.setdefault(group, {}).setdefault(version, []).append(entry)
        items = [
            {
                "metadata": {"name": group},
                "versions": [
                    {"version": version, "resources": entries, "freshness": "Current"}
                    for version, entries in versions.items()
                ],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    async def _collection(self, request: Request) -> Response:
        if self.faults:
            return status(self.faults.pop(0), "Fault")
        parent, _, plural = request.path_params["path"].rpartition("/")
        of_parent = [kind for kind in self._kinds() if parent.endswith(f"/{_plural(kind)}")]
        for change in (change for kind in of_parent for change in self.objects(kind)):
            if change.head.metadata.name == plural:
                return Response(bytes(change.manifest), media_type="application/json")
        kind = next((kind for kind in self._kinds() if _plural(kind) == plural), "")
        if not kind:
            return status(404, "NotFound")
        if request.method != "GET":
            self.refused += 1
            return status(403, "Forbidden")
        if request.query_params.get("watch") == "true":
            start = int(request.query_params["resourceVersion"])
            if start < self.compacted:
                return status(410, "Expired")
            has_bookmarks = request.query_params.get("allowWatchBookmarks") == "true"
            return StreamingResponse(self._watch(kind, start, has_bookmarks=has_bookmarks))
        if self.forgets_pages and "continue" in request.query_params:
            return status(410, "Expired")
        self.lists += request.query_params.get("limit") != "1"
        begin = int(request.query_params.get("continue", "0"))
        items = self.objects(kind)
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        page = int(request.query_params.get("limit", len(items)))
        if begin + page < len(items):
            metadata["continue"] = str(begin + page)
        content = {
            "kind": f"{kind}List",
            "metadata": metadata,
            "items": [change.manifest for change in items[begin : begin + page]],
        }
        return Response(msgspec.json.encode(content), media_type="application/json")

    def _bookmark(self, kind: str) -> bytes:
        """A line with the version up to which a watch has all changes; real servers send one each minute."""
        self.bookmarks += 1
        value = {"kind": kind, "metadata": {"resourceVersion": str(self.version)}}
        return msgspec.json.encode({"type": "BOOKMARK", "object": value}) + b"\n"

    async def _watch(self, kind: str, start: int, *, has_bookmarks: bool) -> AsyncGenerator[bytes]:
        at, cuts, marked = 0, self._cuts, start
        while True:
            while at < self.shown:
                change = self.changes[at]
                at += 1
                if change.head.kind == kind and change.version > start:
                    yield msgspec.json.encode({"type": change.type, "object": change.manifest}) + b"\n"
            if has_bookmarks and self.version >= marked + _BOOKMARK_VERSIONS:
                marked = self.version
                yield self._bookmark(kind)
            if cuts != self._cuts:
                yield b'{"type":"MODIFIED","object":{"kind":"'
                return
            await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def playing(playback: Playback) -> AsyncGenerator[Access]:
    """Serve a playback until the block ends."""
    async with karmada_api.serving(playback.routes()) as url:
        yield Access(server=url)


def _with_version(change: Change, version: int) -> Change:
    value = msgspec.json.decode(change.manifest, type=dict[str, Any])
    value["metadata"]["resourceVersion"] = str(version)
    return recordings.change(change.type, value)


def _plural(kind: str) -> str:
    return (
        f"{kind.lower()[:-1]}ies"
        if kind.endswith("y")
        else f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    )
