"""Snapshots of members' objects: numbers, and the memory that they share."""

import asyncio
import json
from collections.abc import Iterable
from typing import cast

import pytest
from starlette.responses import Response

from engine.http.kube.line_streams import Lines
from engine.http.kube.members.snapshots import SnapshotPlane
from engine.http.kube.members.watches import MemberWatches
from engine.http.kube.requests import Form, ObjectFilter, Query
from engine.kubeapi.schema.resources import ApiPath, Resource, control_plane
from events.json_values import Json, objects_at
from events.kube_objects import KubeObject
from tests.api.servers import NOW_MS, serving
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time

PATH = ApiPath(group="", version="v1", plural="configmaps")
PLAIN = Form()


class Plane(SnapshotPlane):
    """ConfigMaps, decoded for each snapshot; the objects of a member are decoded for each snapshot too."""

    def __init__(self) -> None:
        super().__init__(began_ms=0)
        self.texts = {"a": "1", "b": "1"}
        self.count = 0

    async def _objects(self, resource: Resource) -> Iterable[KubeObject]:
        del resource
        self.count += 1
        await asyncio.sleep(0)
        return [KubeObject({**config_map(name), "data": {"text": text}}) for name, text in self.texts.items()]


def config_maps() -> Resource:
    return next(kind for kind in control_plane().resources if kind.qualified == "configmaps")


async def test_snapshots_share_objects_that_did_not_change() -> None:
    plane, kind = Plane(), config_maps()
    first, before = await plane.snapshot(kind)
    plane.texts["b"] = "2"
    second, after = await plane.snapshot(kind)

    assert after.items["", "a"] is before.items["", "a"]
    assert after.items["", "b"][1].resource_version == str(second) != str(first)


async def test_snapshots_taken_at_once_have_different_numbers() -> None:
    plane, kind = Plane(), config_maps()
    taken = await asyncio.gather(*(plane.snapshot(kind) for _ in range(5)))

    numbers = [number for number, _ in taken]
    assert sorted(set(numbers)) == numbers
    assert plane.last_number() == numbers[-1]
    assert all(plane.snapshot_at(kind, number) is look for number, look in taken)


async def test_state_of_a_quiet_kind_is_remembered() -> None:
    plane, kind = Plane(), config_maps()
    first, before = await plane.snapshot(kind)
    for _ in range(1_000):
        await plane.snapshot(kind)
    plane.texts["b"] = "2"
    last, after = await plane.snapshot(kind)

    assert plane.snapshot_at(kind, first) is plane.snapshot_at(kind, last - 1) is before
    assert plane.snapshot_at(kind, last) is after
    assert plane.snapshot_at(kind, first - 1) is plane.snapshot_at(kind, last + 1) is None


async def test_each_change_of_a_snapshot_has_its_own_number() -> None:
    plane, kind = Plane(), config_maps()
    await plane.snapshot(kind)
    plane.texts = {"b": "2", "c": "1"}
    number, after = await plane.snapshot(kind)
    changed = after.items["", "b"][0]
    resumed = plane.snapshot_at(kind, changed)

    assert changed < after.items["", "c"][0] < number
    assert resumed is not None
    texts = {name: value.at("data", "text") for (_, name), (_, value) in resumed.items.items()}
    assert texts == {"a": "1", "b": "2"}


async def test_watch_resumed_after_an_event_reports_those_that_follow_it_once() -> None:
    plane, kind = Plane(), config_maps()
    number, _ = await plane.snapshot(kind)
    plane.texts = {"b": "2"}
    events = await _watched(plane, number, 3)
    assert [event["type"] for event in events] == ["DELETED", "MODIFIED", "BOOKMARK"]
    resumed = [[event["type"] for event in await _watched(plane, _version(event), 3)] for event in events]
    assert resumed == [["DELETED", "MODIFIED", "BOOKMARK"], ["DELETED", "BOOKMARK"], []]
    plane.texts = {}
    (deleted, _bookmark) = await _watched(plane, _version(events[-1]), 3)
    assert deleted["type"] == "DELETED"
    assert await _watched(plane, _version(deleted), 3) == []


async def test_watch_reports_each_version_of_an_object() -> None:
    plane, kind = Plane(), config_maps()
    number, _ = await plane.snapshot(kind)
    versions: list[int] = []
    for text in "234":
        plane.texts["b"] = text
        written = await plane.get(kind, "", "b")
        assert written is not None
        versions.append(int(written.resource_version))
    events = await _watched(plane, number, 4)
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "MODIFIED", "BOOKMARK"]
    assert [_version(event) for event in events[:3]] == versions


async def test_bookmark_in_a_table_has_no_cells() -> None:
    plane, kind = Plane(), config_maps()
    number, _ = await plane.snapshot(kind)
    plane.texts = {"a": "1"}
    (_, bookmark) = await _watched(plane, number, 2, Form(table="v1"))
    (row,) = objects_at(bookmark, "object", "rows")
    assert (bookmark["type"], row["cells"]) == ("BOOKMARK", [])


async def _watched(plane: Plane, number: int, count: int, form: Form = PLAIN) -> list[Json]:
    """Return the first events of a watch from this version, those within a second."""
    kind, query = config_maps(), Query(resource_version=str(number), watch=True, bookmarks=True, timeout_s=1)
    async with serving() as services:
        watches = MemberWatches(plane, lambda: NOW_MS, services.stopping)
        answer = await watches.answer(kind, PATH, query, form, ObjectFilter(kind, query))
        return await _events(answer, count)


def _version(event: Json) -> int:
    return int(KubeObject(cast("Json", event["object"])).resource_version)


async def test_watches_of_a_kind_share_snapshots() -> None:
    plane, kind = Plane(), config_maps()
    async with serving() as services:
        watches = MemberWatches(plane, lambda: NOW_MS, services.stopping)
        answers = [
            await watches.answer(kind, PATH, Query(), Form(), ObjectFilter(kind, Query())) for _ in range(20)
        ]
        lines = [asyncio.create_task(_lines(answer, 3)) for answer in answers]
        await asyncio.sleep(1.1)
        polls = plane.count - len(answers)
        plane.texts["b"] = "2"
        seen = await asyncio.wait_for(asyncio.gather(*lines), 5)
    assert 0 < polls <= 10, "one for all watches, four times a second"
    assert all(types == ["ADDED", "ADDED", "MODIFIED"] for types in seen)


async def _lines(answer: Response, count: int) -> list[str]:
    """Return the event types of the first lines of a watch."""
    return [str(event["type"]) for event in await _events(answer, count)]


async def _events(answer: Response, count: int) -> list[Json]:
    """Return the first events of a watch; fewer if it ends before."""
    assert isinstance(answer, Lines)
    events: list[Json] = []
    enough = asyncio.Event()

    async def receive() -> Json:
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Json) -> None:
        body = cast("bytes", message.get("body", b""))
        events.extend(json.loads(line) for line in body.splitlines())
        if len(events) >= count:
            enough.set()

    await answer({"type": "http"}, receive, send)  # pyright: ignore[reportArgumentType]
    return events


async def test_watch_without_initial_events_begins_now() -> None:
    plane, kind = Plane(), config_maps()
    async with serving() as services:
        watches = MemberWatches(plane, lambda: NOW_MS, services.stopping)
        answer = await watches.answer(
            kind, PATH, Query(initial_events=False), Form(), ObjectFilter(kind, Query())
        )
        lines = asyncio.create_task(_lines(answer, 1))
        await asyncio.sleep(0.5)
        plane.texts["b"] = "2"
        assert await asyncio.wait_for(lines, 5) == ["MODIFIED"]
