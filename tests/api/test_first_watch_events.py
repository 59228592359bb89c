"""Watch events of an object that changes between two reads of the log: ADDED comes first."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import msgspec
import pytest

from engine.http.kube import watch_feed
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.rate_limits import Limits
from engine.http.kube.watch_feed import Batch, Feed, Key, ObjectChange, Subscriber
from engine.http.services import Services
from engine.kubeapi.schema.resources import Resource, control_plane
from engine.writing.read_side import ReadSide
from projections.port import ProjectionError, Rows
from tests.api.kube.client import MAPS, api, create, version
from tests.api.servers import plane_parts
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time

_Answer = TypeVar("_Answer")

PATCH = {"content-type": "application/merge-patch+json"}


def maps() -> Resource:
    resource = control_plane().resource("", "v1", "configmaps")
    assert resource is not None
    return resource


def changes_of(happened: list[ObjectChange]) -> list[tuple[str, int]]:
    return [(change.change_type, change.number) for change in happened]


async def changed(client: httpx.AsyncClient, value: str) -> int:
    answer = await client.patch(f"{MAPS}/one", content=f'{{"data":{{"a":"{value}"}}}}', headers=PATCH)
    return int(version(answer.json()))


async def looked_at(services: Services, after: int, end: int) -> Batch:
    return await Feed(services, ControlPlane(*plane_parts(services)), Limits()).backlog(maps(), after, end)


async def test_first_change_of_an_unseen_object_is_reported_as_added() -> None:
    async with api() as (client, services):
        came = int(version(await create(client, config_map("one"))))
        number = await changed(client, "b")
        behind = await looked_at(services, came - 1, came)
        assert changes_of(behind.changes) == [], "the newest version is reported later"

        subscriber = Subscriber(maps(), came, Limits())
        subscriber.mark_unreported(set(behind.unreported))
        subscriber.enqueue(await looked_at(services, came, number), number)
        assert changes_of(subscriber.take()) == [("ADDED", number)]
        again = await changed(client, "c")
        subscriber.enqueue(await looked_at(services, number, again), again)
        assert changes_of(subscriber.take()) == [("MODIFIED", again)]


async def test_object_deleted_before_it_was_reported_causes_no_event() -> None:
    async with api() as (client, services):
        came = int(version(await create(client, config_map("one"))))
        await client.delete(f"{MAPS}/one")
        behind = await looked_at(services, came - 1, came)
        end = services.views.folded

        subscriber = Subscriber(maps(), came, Limits())
        subscriber.enqueue(await looked_at(services, came, end), end)
        subscriber.mark_unreported(set(behind.unreported))
        assert changes_of(behind.changes) == changes_of(subscriber.take()) == []


@pytest.mark.parametrize("before", [0, 1])
async def test_reported_object_is_not_added_again(before: int) -> None:
    async with api() as (client, services):
        came = int(version(await create(client, config_map("one"))))
        behind = await looked_at(services, came - before, came)
        number = await changed(client, "b")

        subscriber = Subscriber(maps(), came, Limits())
        subscriber.mark_unreported(set(behind.unreported))
        subscriber.enqueue(await looked_at(services, came, number), number)
        assert changes_of(subscriber.take()) == [("MODIFIED", number)]


async def test_each_event_has_its_own_number_even_after_the_object_is_deleted() -> None:
    async with api() as (client, services):
        came = int(version(await create(client, config_map("one"))))
        number = await changed(client, "b")
        deletion_number = int(
            (await client.delete(f"{MAPS}/one")).json()["metadata"].get("resourceVersion", 0)
        )
        end = services.views.folded
        behind = await looked_at(services, came, end)

        assert [word for word, _ in changes_of(behind.changes)] == ["MODIFIED", "DELETED"]
        assert [int(change.value.resource_version) for change in behind.changes] == [
            change.number for change in behind.changes
        ]
        assert behind.changes[0].number == number < behind.changes[1].number
        assert deletion_number in {0, behind.changes[1].number}


class SlowFeed:
    """Holds the reads of all feeds back until ``go_on``; counts their subscribers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._gate = asyncio.Event()
        self._joined = 0
        self._gate.set()
        turn, subscribe = Feed._turn, Feed.subscribe  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

        async def turn_later(feed: Feed) -> None:
            await self._gate.wait()
            await turn(feed)

        def counted(feed: Feed, resource: Resource) -> Subscriber:
            self._joined += 1
            return subscribe(feed, resource)

        monkeypatch.setattr(Feed, "_turn", turn_later)
        monkeypatch.setattr(Feed, "subscribe", counted)

    def stop(self) -> None:
        self._gate.clear()

    def go_on(self) -> None:
        self._gate.set()

    async def joined(self, count: int) -> None:
        """Wait until so many watches have subscribed, and read what they begin with."""
        while self._joined < count:  # noqa: ASYNC110  # a counter of a test, read within a second
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)


@dataclass(frozen=True, kw_only=True)
class FailingReads(ReadSide):
    """Reads of the views; ``failures`` has for each of the next ones whether it fails."""

    failures: deque[bool] = field(default_factory=deque[bool])

    async def peek(self, query: Callable[[Rows], _Answer]) -> _Answer:
        if self.failures and self.failures.popleft():
            raise ProjectionError("the file is locked")
        return await super().peek(query)


async def watched(client: httpx.AsyncClient, since: str, selector: str = "") -> list[tuple[str, int]]:
    """Return the types and numbers of the events of a watch that lasts two seconds."""
    query = {"watch": "1", "timeoutSeconds": "2", **({"resourceVersion": since} if since else {})}
    answer = await client.get(MAPS, params={**query, "labelSelector": selector})
    return [
        (event["type"], int(version(event["object"])))
        for event in map(msgspec.json.decode, answer.text.splitlines())
    ]


@pytest.mark.parametrize("begins", ["resumed", "listed"])
async def test_watch_that_is_ahead_of_the_feed_gets_only_later_changes(
    begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = SlowFeed(monkeypatch)
    async with api() as (client, _):
        await create(client, config_map("one"))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watched(client, ""))
            await feed.joined(1)
            feed.stop()
            await client.delete(f"{MAPS}/one")
            created = version(await create(client, config_map("one")))
            late = tasks.create_task(watched(client, created if begins == "resumed" else ""))
            await feed.joined(2)
            number = await changed(client, "b")
            feed.go_on()
    expected = [("MODIFIED", number)]
    assert late.result() == (expected if begins == "resumed" else [("ADDED", int(created)), *expected])


async def test_resumed_watch_reports_an_object_that_was_changed_since_its_creation_as_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = SlowFeed(monkeypatch)
    async with api() as (client, _), asyncio.TaskGroup() as tasks:
        since = version(await create(client, config_map("zero")))
        tasks.create_task(watched(client, ""))
        await feed.joined(1)
        await create(client, config_map("one"))
        await asyncio.sleep(0.1)
        feed.stop()
        number = await changed(client, "b")
        late = tasks.create_task(watched(client, since))
        await feed.joined(2)
        feed.go_on()
    assert late.result() == [("ADDED", number)]


async def test_watch_that_is_ahead_of_the_feed_reports_an_object_that_its_selector_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = SlowFeed(monkeypatch)
    async with api() as (client, _), asyncio.TaskGroup() as tasks:
        tasks.create_task(watched(client, ""))
        await feed.joined(1)
        feed.stop()
        listed = version(await create(client, config_map("one")))
        lost = await client.patch(f"{MAPS}/one", json={"metadata": {"labels": {"a": "b"}}}, headers=PATCH)
        late = tasks.create_task(watched(client, listed, "a!=b"))
        await feed.joined(2)
        feed.go_on()
    assert late.result() == [("DELETED", int(version(lost.json())))]


async def test_change_is_reported_once_although_the_next_read_of_a_turn_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = SlowFeed(monkeypatch)
    monkeypatch.setattr(watch_feed, "AFTER_FAILURE_S", 0.01)
    async with api() as (client, services):
        reads = FailingReads(log=services.log, views=services.views)
        feed = Feed(services, ControlPlane(reads, *plane_parts(services)[1:]), Limits())
        turns.stop()
        behind, ahead = feed.subscribe(maps()), feed.subscribe(maps())
        created = int(version(await create(client, config_map("one"))))
        ahead.restart(created)
        number = await changed(client, "b")
        await services.views.wait_folded(number)
        # The watches begin at different numbers, so a turn has two reads.
        reads.failures.extend((False, True))
        turns.go_on()
        await ahead.more.wait()
        assert not reads.failures, "the second read failed"
        assert changes_of(ahead.take()) == [("MODIFIED", number)]
        assert changes_of(behind.take()) == [("ADDED", number)]
        feed.leave(behind)
        feed.leave(ahead)


async def test_defect_at_a_change_ends_the_open_watches_and_not_the_feed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = SlowFeed(monkeypatch)
    monkeypatch.setattr(watch_feed, "AFTER_FAILURE_S", 0.01)
    async with api() as (client, services):
        feed = Feed(services, ControlPlane(*plane_parts(services)), Limits())
        turns.stop()
        open_watch = feed.subscribe(maps())
        fail_reads_before(int(version(await create(client, config_map("one")))), monkeypatch)
        turns.go_on()
        await asyncio.wait_for(open_watch.more.wait(), 5)
        assert open_watch.is_cut
        # A client that reads slowly has not noticed yet that its watch has ended.
        resumed = feed.subscribe(maps())
        number = await changed(client, "b")
        await asyncio.wait_for(resumed.more.wait(), 5)
        assert not resumed.is_cut
        assert changes_of(resumed.take()) == [("MODIFIED", number)]
        feed.leave(open_watch)
        feed.leave(resumed)


def fail_reads_before(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reads of the feed fail that include the change with this number."""
    read = watch_feed._batch  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def failing(
        rows: Rows, plane: ControlPlane, after: int, end: int, resources: Mapping[Key, Resource]
    ) -> tuple[int, dict[Key, Batch]]:
        if after < number:
            raise ValueError("a field of an unexpected type")
        return read(rows, plane, after, end, resources)

    monkeypatch.setattr(watch_feed, "_batch", failing)
