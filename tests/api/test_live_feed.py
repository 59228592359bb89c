"""The live feed over a real connection: every record once, in order, from any position."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from engine.http.query import live_feed
from tests.api import feeds
from tests.api.servers import TOKEN, Served, application, client, on_a_port, serving
from tests.builders.inputs import deployment
from tests.projections.logs import RecordBuilder
from tests.projections.stories import decided, declared

KEY = "default/foo-deployment"


@pytest.fixture
def builder() -> RecordBuilder:
    return RecordBuilder()


@pytest.fixture
def server(builder: RecordBuilder) -> Iterator[Served]:
    with on_a_port([builder.input(deployment("foo", 1)), *builder.decide(declared(KEY, "foo", 1))]) as served:
        yield served


def first_events(
    server: Served, count: int, *, path: str = "/api/v1/live", last_id: str = ""
) -> list[ServerSentEvent]:
    """Return the first events of a feed; a record is written while it is open."""
    headers = {"authorization": f"Bearer {TOKEN}"} | ({"last-event-id": last_id} if last_id else {})
    events: list[ServerSentEvent] = []
    with (
        httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False) as http,
        connect_sse(http, "GET", path) as feed,
    ):
        server.append(RecordBuilder().decide(decided("default/other-deployment", member1=1)))
        for event in feed.iter_sse():
            events.append(event)
            if len(events) == count:
                break
    return events


def test_feed_begins_at_the_end_of_the_log(server: Served) -> None:
    events = first_events(server, 2)

    assert [event.id for event in events] == ["4", "5"]
    assert events[1].event == "io.reballast.schedule-decided.v1"
    assert events[1].json()["data"]["clusters"] == [{"name": "member1", "replicas": 1}]


def test_feed_continues_after_a_given_position(server: Served) -> None:
    assert [event.id for event in first_events(server, 3, path="/api/v1/live?after=1")] == ["2", "3", "4"]
    assert [event.id for event in first_events(server, 2, last_id="3")] == ["4", "5"]


def test_feed_is_filtered_by_key(server: Served) -> None:
    events = first_events(server, 2, path=f"/api/v1/live?after=0&key={KEY}")

    assert [event.id for event in events] == ["1", "3"]


async def test_feeds_that_are_opened_at_once_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "READERS_MAX", 2)
    async with serving() as services:
        app = application(services)
        for _ in range(2):
            assert await feeds.statuses(app, "/api/v1/live", 5) == [200, 200, 429, 429, 429]


async def test_slow_reader_is_cut_off_with_a_bookmark(
    builder: RecordBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "BEHIND_RECORDS_MAX", 10)
    async with serving([builder.input(deployment("foo", 1))]) as services:
        feed = live_feed.follow(services, 0, "", "")
        first = await anext(feed)
        # The reader pauses: it requests nothing while many records are written.
        await services.log.append([builder.input(deployment("foo", at)) for at in range(2, 20)])
        await services.views.wait_folded(services.log.last_number())
        rest = [event async for event in feed]
        resumed = await anext(live_feed.follow(services, 1, "", ""))

    assert first.id == "1"
    assert [(event.event, event.data) for event in rest] == [("bookmark", '{"after":1}')]
    assert resumed.id == "2"


async def test_feed_ends_with_a_bookmark_at_shutdown(builder: RecordBuilder) -> None:
    async with serving([builder.input(deployment("foo", 1))]) as services:
        feed = live_feed.follow(services, 0, "", "")
        first = await anext(feed)
        waiting = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0.01)
        services.stopping.set()
        last = await asyncio.wait_for(waiting, 5)

    assert (first.id, last.event, last.id) == ("1", "bookmark", "1")


async def test_catching_up_with_old_records_is_not_cut_off(
    builder: RecordBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "BEHIND_RECORDS_MAX", 10)
    async with serving([builder.input(deployment("foo", at)) for at in range(40)]) as services:
        feed = live_feed.follow(services, 0, "", "")
        numbers = [(await anext(feed)).id for _ in range(40)]
        waiting = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0.01)
        await services.log.append([builder.input(deployment("foo", 99))])
        newest = await asyncio.wait_for(waiting, 5)

    assert numbers == [str(number) for number in range(1, 41)]
    assert newest.id == "41"


async def test_head_of_the_feed_is_refused() -> None:
    async with serving() as services, client(services) as http, asyncio.timeout(10):
        assert (await http.head("/api/v1/live")).status_code == 405
