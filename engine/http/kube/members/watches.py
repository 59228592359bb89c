"""Watches of a member's objects, served by taking snapshots repeatedly."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

import msgspec
from starlette.responses import Response

from engine.http.kube import rendering, requests
from engine.http.kube.line_streams import SECONDS, SECONDS_MAX, Lines
from engine.http.kube.members.snapshots import Snapshot, SnapshotPlane
from engine.http.kube.requests import ObjectFilter, Query
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.kubeapi.values import resource_versions
from events.kube_objects import KubeObject

_POLL_SECONDS: Final = 0.25
_WATCHERS_MAX: Final = 256


class MemberWatches:
    """Serve watches of a member's objects by taking snapshots repeatedly."""

    def __init__(self, plane: SnapshotPlane, clock_ms: Callable[[], int], stopping: asyncio.Event) -> None:
        self._plane = plane
        self._clock_ms = clock_ms
        self._stopping = stopping
        self._open: set[Response] = set()

    async def answer(
        self, resource: Resource, api_path: ApiPath, query: Query, form: requests.Form, fits: ObjectFilter
    ) -> Response:
        """The response to a watch; raises StatusError."""
        if len(self._open) >= _WATCHERS_MAX:
            raise status_objects.too_many_requests(1, f"the limit of {_WATCHERS_MAX} watches is reached")
        seen: Snapshot | None = Snapshot({})
        if not query.lists_first and not query.is_versioned:
            _number, seen = await self._plane.snapshot(resource)
        elif not query.lists_first:
            if not resource_versions.is_valid(query.resource_version):
                raise status_objects.bad_request("resourceVersion: Invalid value")
            seen = self._plane.remembered(resource, int(query.resource_version))
        if seen is None:
            raise status_objects.expired()

        def is_selected(value: KubeObject) -> bool:
            return api_path.namespace in ("", value.namespace) and fits(value)

        def line(event_type: str, value: KubeObject) -> bytes:
            shown = rendering.render_object(resource, value, form, self._clock_ms())
            return rendering.encode({"type": event_type, "object": shown}) + b"\n"

        lines = self._lines(resource, seen, is_selected, line, query)
        return Lines(lines, min(query.timeout_s or SECONDS, SECONDS_MAX), self._open)

    async def _lines(
        self,
        resource: Resource,
        seen: Snapshot,
        is_selected: Callable[[KubeObject], bool],
        line: Callable[[str, KubeObject], bytes],
        query: Query,
    ) -> AsyncGenerator[bytes]:
        number = 0
        known = {name: entry for name, entry in seen.items.items() if is_selected(entry[1])}
        try:
            while not self._stopping.is_set():
                # Take a new first snapshot instead of a shared one: the client may have just written an object.
                number, look = await (
                    self._plane.shared(resource, number, _POLL_SECONDS)
                    if number
                    else self._plane.snapshot(resource)
                )
                now = {name: entry for name, entry in look.items.items() if is_selected(entry[1])}
                for name, (changed, value) in now.items():
                    if name not in known:
                        yield line("ADDED", value)
                    elif known[name][1].uid != value.uid:
                        # The object was deleted and created again between two snapshots.
                        yield line("DELETED", known[name][1])
                        yield line("ADDED", value)
                    elif known[name][0] != changed:
                        yield line("MODIFIED", value)
                for name in known.keys() - now.keys():
                    yield line("DELETED", known[name][1])
                known = now
                if query.initial_events and query.bookmarks:
                    yield line("BOOKMARK", rendering.initial_end(resource, number))
                    query = msgspec.structs.replace(query, initial_events=False)
                await asyncio.sleep(_POLL_SECONDS)
        except status_objects.StatusError as error:
            yield rendering.error_line(error)
