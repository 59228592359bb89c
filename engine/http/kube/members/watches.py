"""Watches of a member's objects, served by taking snapshots repeatedly."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

import msgspec
from starlette.responses import Response

from engine.http.kube import rendering, requests
from engine.http.kube.line_streams import Lines
from engine.http.kube.members.snapshots import Entry, Name, Snapshot, SnapshotPlane
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
        begin = 0
        if not query.lists_first and not query.is_versioned:
            begin, seen = await self._plane.snapshot(resource)
        elif not query.lists_first:
            if not resource_versions.is_valid(query.resource_version):
                raise status_objects.bad_request("resourceVersion: Invalid value")
            begin = int(query.resource_version)
            seen = self._plane.snapshot_at(resource, begin)
        if seen is None:
            raise status_objects.expired()

        def is_selected(value: KubeObject) -> bool:
            return api_path.namespace in ("", value.namespace) and fits(value)

        lines = self._lines(resource, (begin, seen), is_selected, form, query)
        return Lines(lines, query.timeout_s, self._open)

    async def _lines(
        self,
        resource: Resource,
        seen: tuple[int, Snapshot],
        is_selected: Callable[[KubeObject], bool],
        form: requests.Form,
        query: Query,
    ) -> AsyncGenerator[bytes]:
        begin, first = seen
        number = 0
        known = {name: entry for name, entry in first.items.items() if is_selected(entry[1])}
        try:
            while not self._stopping.is_set():
                # Take a new first snapshot instead of a shared one: the client may have just written an object.
                before = number or begin
                number, look = await (
                    self._plane.shared(resource, number, _POLL_SECONDS)
                    if number
                    else self._plane.snapshot(resource)
                )
                is_changed = False
                for later, state in self._states(resource, before, (number, look)):
                    now = {name: entry for name, entry in state.items.items() if is_selected(entry[1])}
                    changes = _changes(known, now, before, later)
                    for event_type, value in changes:
                        yield rendering.line(event_type, resource, value, form, self._clock_ms())
                    known, before = now, later
                    is_changed = is_changed or bool(changes)
                    await asyncio.sleep(0)
                if query.bookmarks and (query.initial_events or is_changed):
                    yield rendering.bookmark(resource, form, number, ends_list=bool(query.initial_events))
                    query = msgspec.structs.replace(query, initial_events=False)
                await asyncio.sleep(_POLL_SECONDS)
        except status_objects.StatusError as error:
            yield rendering.error_line(error)

    def _states(
        self, resource: Resource, before: int, newest: tuple[int, Snapshot]
    ) -> Iterable[tuple[int, Snapshot]]:
        """Return the states after the number ``before``, the newest one last; if ``before`` is 0, only the newest.

        Older states are needed: a client may wait for the version that its write returned, although the object has
        changed again since.
        """
        after = self._plane.states_after(resource, before) if before else []
        return [*(state for state in after if state[0] < newest[0]), newest]


def _changes(
    known: dict[Name, Entry], now: dict[Name, Entry], before: int, number: int
) -> list[tuple[str, KubeObject]]:
    """Return the differences of two snapshots with these numbers, as watch events with a type and an object.

    A watch that is resumed from the version of an event must report all later events. Therefore deletions come first,
    with the version ``before``; if no change follows the deletions, the last deletion has the version ``number``.
    """
    deleted = {
        name: value for name, (_, value) in known.items() if name not in now or now[name][1].uid != value.uid
    }
    changed = sorted(
        (entry[0], name) for name, entry in now.items() if name not in known or known[name][0] != entry[0]
    )
    versions = [before] * len(deleted)
    if deleted and not changed:
        versions[-1] = number
    return [
        *(
            ("DELETED", value.with_metadata({"resourceVersion": str(version)}))
            for value, version in zip(deleted.values(), versions, strict=True)
        ),
        *(
            ("MODIFIED" if name in known and name not in deleted else "ADDED", now[name][1])
            for _, name in changed
        ),
    ]
