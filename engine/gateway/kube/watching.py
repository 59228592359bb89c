"""Watches: what happens to objects of a kind, line by line, from a resourceVersion on.

The number of a record is the resourceVersion of what it changed, so a watch goes on anywhere where another ended, on
any replica. What is too old to be told is answered with 410, and clients look at everything again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Final

from starlette.responses import Response

from engine.gateway.kube import rendering
from engine.gateway.kube.control import ControlPlane
from engine.gateway.kube.feeding import Feed, Happening, Subscriber
from engine.gateway.kube.fitting import Fitting
from engine.gateway.kube.limits import Limits
from engine.gateway.kube.lines import SECONDS, SECONDS_MAX, Lines
from engine.gateway.kube.paths import Place
from engine.gateway.kube.requests import Query, version_fault
from engine.gateway.services import Services
from engine.kube import statuses
from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_object
from projections import changes

WATCHERS_MAX: Final = 1_024
_PART_BYTES: Final = 65_536
_BOOKMARK_SECONDS: Final = 30.0
_INITIAL_END: Final = "k8s.io/initial-events-end"


class Watching:
    """Answers watches of what the log and the views hold."""

    def __init__(
        self, services: Services, plane: ControlPlane, clock_ms: Callable[[], int], limits: Limits
    ) -> None:
        self._services = services
        self._plane = plane
        self._clock_ms = clock_ms
        self._feed = Feed(services, plane, limits)

    def answer(
        self,
        resource: Resource,
        place: Place,
        query: Query,
        form: rendering.Form,
        fits: Fitting,
    ) -> Response:
        """The answer to a watch; raises StatusError where there are too many, or what is asked is too old."""
        if resource.kind == "Event":
            return self._plane.events.watched(resource, place.namespace, query, form, self._clock_ms())
        if self._feed.count >= WATCHERS_MAX:
            raise statuses.too_many_requests(1, f"{WATCHERS_MAX} watches are open")
        since = _since(query.resource_version)
        checkpoint = self._services.views.folded
        if since and (not changes.is_kept(since, checkpoint) or since > self._services.log.last_number()):
            raise statuses.expired()
        watch = _Watch(resource, place.namespace, form, fits, self._clock_ms)
        watch.is_selective = bool(query.label_selector or query.field_selector)
        lines = self._lines(watch, query, since)
        return Lines(lines, min(query.timeout_s or SECONDS, SECONDS_MAX))

    async def _lines(self, watch: "_Watch", query: Query, since: int) -> AsyncGenerator[bytes]:
        # Another replica gave this number, and this one may not be there yet; what it stands for was told there.
        await self._services.views.wait_folded(since)
        watch.floor = since
        subscriber = self._feed.subscribe(watch.resource)
        try:
            async for line in self._begin(watch, query, since, subscriber):
                yield line
            watch.is_level = True
            while not self._services.stopping.is_set():
                is_more = await self._wait(subscriber)
                if subscriber.is_cut:
                    break
                told = watch.position
                for part in _parts(line for each in subscriber.take() for line in watch.told(each)):
                    yield part
                watch.position = max(told, subscriber.position)
                if not is_more and query.bookmarks:
                    yield watch.bookmark()
            if query.bookmarks:
                yield watch.bookmark()
        finally:
            self._feed.leave(subscriber)

    async def _begin(
        self, watch: "_Watch", query: Query, since: int, subscriber: Subscriber
    ) -> AsyncGenerator[bytes]:
        """What happened before: everything that stands, or what changed since a number."""
        start = subscriber.position
        if since and not query.initial_events:
            if watch.is_selective:
                watch.known = await self._known(watch)
            watch.position = since
            behind = await self._feed.backlog(watch.resource, since, start)
            subscriber.owe(set(behind.untold))
            for happening in behind.told:
                for line in watch.told(happening):
                    yield line
            watch.position = max(since, start)
            return
        is_fresh = query.resource_version != "0"
        listed = await self._plane.listed(watch.resource, watch.namespace, watch.fits, is_fresh=is_fresh)
        for value in listed.items:
            yield watch.line("ADDED", value)
        watch.floor = watch.position = listed.number
        if watch.is_selective:
            watch.known = {_name(value) for value in listed.items}
        if query.initial_events:
            yield watch.bookmark({_INITIAL_END: "true"})

    async def _known(self, watch: "_Watch") -> set[tuple[str, str]]:
        listed = await self._plane.listed(watch.resource, watch.namespace, watch.fits, is_fresh=False)
        return {_name(value) for value in listed.items}

    async def _wait(self, subscriber: Subscriber) -> bool:
        """Waits for more, or for the time of a bookmark; the end of the process wakes it too."""
        try:
            async with asyncio.timeout(_BOOKMARK_SECONDS):
                await subscriber.more.wait()
        except TimeoutError:
            return False
        return True


class _Watch:
    """What one watcher wants, and what it knows; ``floor`` is the number that it was told everything of at first."""

    def __init__(
        self,
        resource: Resource,
        namespace: str,
        form: rendering.Form,
        fits: Fitting,
        clock_ms: Callable[[], int],
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.form = form
        self.fits = fits
        self.floor = 0
        self.position = 0
        self.is_selective = False
        self.is_level = False
        self.known: set[tuple[str, str]] = set()
        self._clock_ms = clock_ms

    def told(self, happening: Happening) -> list[bytes]:
        """The lines that tell it; none where it is no business of this watcher."""
        if happening.number <= self.floor:
            return []
        name = _name(happening.value)
        if self.namespace and name[0] != self.namespace:
            return []
        word = happening.word
        if self.is_selective:
            word = self._selected(word, name, happening.value)
        if not word:
            return []
        key = (word, self.form)
        line = happening.lines.get(key)
        if line is None:
            line = happening.lines[key] = self.line(word, happening.value)
        return [line]

    def line(self, word: str, value: Json) -> bytes:
        """One line."""
        shown = rendering.one(self.resource, value, self.form, self._clock_ms())
        return rendering.encode({"type": word, "object": shown}) + b"\n"

    def bookmark(self, annotations: Json | None = None) -> bytes:
        """Where to go on from."""
        metadata: Json = {"resourceVersion": str(self.position)}
        if annotations:
            metadata["annotations"] = annotations
        value: Json = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
        }
        if self.form.table:
            head: Json = {**value, "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            table = rendering.many(self.resource, [], self.form, 0, metadata)
            value = {**table, "rows": [{"cells": [], "object": head}]}
        return rendering.encode({"type": "BOOKMARK", "object": value}) + b"\n"

    def _selected(self, word: str, name: tuple[str, str], value: Json) -> str:
        """What a change is to one who sees only some objects; empty where it is nothing to them."""
        was_there = name in self.known
        if word != "DELETED" and self.fits(value):
            self.known.add(name)
            return "MODIFIED" if was_there and word == "MODIFIED" else "ADDED"
        self.known.discard(name)
        # Before it is level, nobody knows whether the client saw it; to hear of its end does no harm.
        is_told = was_there or not self.is_level or (word == "DELETED" and self.fits(value))
        return "DELETED" if is_told else ""


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that go out together, up to a size: each part costs a system call, whatever is in it."""
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


def _since(version: str) -> int:
    if wrong := version_fault(version):
        raise statuses.bad_request(wrong)
    return int(version or 0)


def _name(value: Json) -> tuple[str, str]:
    held = as_object(value.get("metadata")) or {}
    return str(held.get("namespace", "")), str(held.get("name", ""))
