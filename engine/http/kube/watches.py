"""Watches: the changes of one kind after a resourceVersion, as lines.

A resourceVersion is a sequence number of the log, so a watch can be resumed on any replica. For a number that is
too old the response is 410, and the client lists again.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Final

from starlette.responses import Response

from engine.http.kube import bootstrap_objects, rendering, requests
from engine.http.kube.control_plane import ControlPlane, Listed
from engine.http.kube.line_streams import Lines
from engine.http.kube.rate_limits import Limits
from engine.http.kube.requests import ObjectFilter, Query, version_fault
from engine.http.kube.watch_feed import Feed, ObjectChange, Subscriber
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.writing.read_side import ReadSide
from events.kube_objects import KubeObject
from projections import changes

WATCHERS_MAX: Final = 1_024
_PART_BYTES: Final = 65_536
_BOOKMARK_SECONDS: Final = 30.0


class Watching:
    """Serve watches from the views and the log."""

    def __init__(
        self, reads: ReadSide, plane: ControlPlane, clock_ms: Callable[[], int], limits: Limits
    ) -> None:
        self._reads = reads
        self._plane = plane
        self._clock_ms = clock_ms
        self._feed = Feed(reads, plane, limits)
        self._open: set[Response] = set()

    async def answer(
        self,
        resource: Resource,
        api_path: ApiPath,
        query: Query,
        form: requests.Form,
        fits: ObjectFilter,
    ) -> Response:
        """The response to a watch; raises StatusError: 429 for too many watches, 410 for an old resourceVersion."""
        if resource.is_event:
            return await self._plane.events.watched(resource, api_path.namespace, query, form, self._clock_ms)
        if wrong := version_fault(query.resource_version):
            raise status_objects.bad_request(wrong)
        since = int(query.resource_version or 0)
        if since > self._reads.log.last_number():
            # The client may have got the number from another replica, or from the views' process, which can be ahead.
            await self._reads.log.newest()
        checkpoint = self._reads.views.folded
        if since and (not changes.is_kept(since, checkpoint) or since > self._reads.log.last_number()):
            raise status_objects.expired()
        if len(self._open) >= WATCHERS_MAX:
            raise status_objects.too_many_requests(1, f"the limit of {WATCHERS_MAX} watches is reached")
        watch = _Watch(resource, api_path.namespace, form, fits, self._clock_ms)
        watch.is_selective = bool(query.label_selector or query.field_selector)
        return Lines(self._lines(watch, query, since), query.timeout_s, self._open)

    async def _lines(self, watch: "_Watch", query: Query, since: int) -> AsyncGenerator[bytes]:
        # The number may come from a replica that is ahead; wait until the views of this one have folded it.
        await self._reads.views.wait_folded(since)
        if (watch.resource.api_version, watch.resource.kind) in bootstrap_objects.SOURCES:
            await self._plane.bootstrap.prepare()
        watch.floor = since
        # Subscribe before reading earlier changes, so that none is missed in between.
        subscriber = self._feed.subscribe(watch.resource)
        try:
            async for line in self._begin(watch, query, since, subscriber):
                yield line
            loop = asyncio.get_running_loop()
            bookmark_s = loop.time() + _BOOKMARK_SECONDS
            while not self._reads.stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(bookmark_s):
                        await subscriber.more.wait()
                if subscriber.is_cut:
                    break
                # Read the position before sending: the feed may queue more changes meanwhile and advance its position.
                # The initial list may be ahead of the feed, but the number of a bookmark must never decrease.
                taken, position = subscriber.take(), max(watch.position, subscriber.position)
                for part in _parts(line for change in taken for line in watch.lines_of(change)):
                    yield part
                watch.position = position
                # Send bookmarks also while the kind changes often: this watch may select none of the changed objects.
                if loop.time() >= bookmark_s:
                    bookmark_s = loop.time() + _BOOKMARK_SECONDS
                    if query.bookmarks:
                        yield watch.bookmark()
            if query.bookmarks:
                yield watch.bookmark()
        except changes.DroppedError:
            yield rendering.error_line(status_objects.expired())
        finally:
            self._feed.leave(subscriber)

    async def _begin(
        self, watch: "_Watch", query: Query, since: int, subscriber: Subscriber
    ) -> AsyncGenerator[bytes]:
        """The first lines of a watch: all current objects, or the changes after ``since``."""
        if not query.lists_first:
            if not since:
                since = watch.floor = await self._reads.catch_up()
            if watch.is_selective:
                listed = await self._plane.listed(watch.resource, watch.namespace, watch.fits, is_fresh=False)
                watch.set_matching(listed)
            async for line in self._catch_up(watch, since, subscriber):
                yield line
            return
        is_fresh = query.resource_version != "0"
        listed = await self._plane.listed(watch.resource, watch.namespace, watch.fits, is_fresh=is_fresh)
        for value in listed.items:
            yield watch.line("ADDED", value)
        watch.floor = watch.position = listed.number
        if watch.is_selective:
            watch.set_matching(listed)
        if query.initial_events and query.bookmarks:
            yield watch.bookmark(ends_list=True)
        async for line in self._catch_up(watch, listed.number, subscriber):
            yield line

    async def _catch_up(self, watch: "_Watch", since: int, subscriber: Subscriber) -> AsyncGenerator[bytes]:
        """Lines about the changes after ``since``, up to the number at which the subscriber's queue begins."""
        watch.position = since
        start = subscriber.restart(since)
        if start > since:
            behind = await self._feed.backlog(watch.resource, since, start)
            # The backlog lacks an object that was created before ``start`` and changed after it, since only current
            # states can be read. The client does not know the object, so its next change must be ADDED.
            subscriber.mark_unreported(set(behind.unreported))
            for change in behind.changes:
                for line in watch.lines_of(change):
                    yield line
        watch.position = start


class _Watch:
    """State of one watch; when it began, its client knew all changes up to the sequence number ``floor``."""

    def __init__(
        self,
        resource: Resource,
        namespace: str,
        form: requests.Form,
        fits: ObjectFilter,
        clock_ms: Callable[[], int],
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.form = form
        self.fits = fits
        self.floor = 0
        self.position = 0
        self.is_selective = False
        self._known: set[tuple[str, str]] = set()
        self._known_at = 0
        self._clock_ms = clock_ms

    def set_matching(self, listed: Listed) -> None:
        """Store which objects match the selectors, as of the number of the list."""
        self._known, self._known_at = {value.key for value in listed.items}, listed.number

    def lines_of(self, change: ObjectChange) -> list[bytes]:
        """Lines that report a change to this watch.

        Empty if the client already knows the change, or if the watch does not select the object.
        """
        if change.number <= self.floor:
            return []
        name = change.value.key
        if self.namespace and name[0] != self.namespace:
            return []
        event_type = change.change_type
        if self.is_selective:
            event_type = self._selected(event_type, name, change.value)
        if not event_type:
            return []
        key = (event_type, self.form)
        line = change.lines.get(key)
        if line is None:
            line = change.lines[key] = self.line(event_type, change.value)
        return [line]

    def line(self, event_type: str, value: KubeObject) -> bytes:
        return rendering.line(event_type, self.resource, value, self.form, self._clock_ms())

    def bookmark(self, *, ends_list: bool = False) -> bytes:
        return rendering.bookmark(self.resource, self.form, self.position, ends_list=ends_list)

    def _selected(self, event_type: str, name: tuple[str, str], value: KubeObject) -> str:
        """The event type for a watch with selectors; empty if the object does not match them and did not before."""
        was_there = name in self._known
        if event_type != "DELETED" and self.fits(value):
            self._known.add(name)
            return "MODIFIED" if was_there and event_type == "MODIFIED" else "ADDED"
        self._known.discard(name)
        # ``_known`` comes from a list that may be newer than this change, and so lack an object that matched before the
        # change. Unless the change created the object, the client may have it from an earlier list. A superfluous
        # DELETED is harmless.
        may_be_known = event_type != "ADDED" and self.position < self._known_at
        is_reported = was_there or may_be_known or (event_type == "DELETED" and self.fits(value))
        return "DELETED" if is_reported else ""


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines into parts of limited size: each part costs a system call."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= _PART_BYTES:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)
