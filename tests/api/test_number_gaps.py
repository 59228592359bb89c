"""Logs with gaps in their numbers, as on Kafka: feeds stay behind the views, and no reader waits forever."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from engine.http.query import live_feed, parameters, record_pages
from engine.http.services import Services
from engine.log import port
from engine.log.local import MemoryLog
from events.records import StoredRecord
from projections.runner import Projector
from tests.api.servers import client, serving
from tests.projections.gaps import GappedLog
from tests.projections.stories import Story

RECORDS = 40


@asynccontextmanager
async def gapped() -> AsyncGenerator[tuple[Services, GappedLog]]:
    log = GappedLog()
    story = Story(3)
    async with serving(story.opening(), log) as services:
        while len(log.records) < RECORDS:
            await log.append(story.more())
        await services.views.wait_folded(log.last_number())
        yield services, log


async def test_feed_yields_each_folded_record_once_in_order() -> None:
    async with gapped() as (services, log):
        feed = live_feed.follow(services, 0, "", "")
        numbers = [int((await anext(feed)).id or 0) for _ in log.records]

        assert numbers == [record.number for record in log.records]


async def test_known_records_end_where_the_views_have_folded() -> None:
    async with gapped() as (services, log):
        half = log.records[RECORDS // 2].number
        assert await services.folded_records(half, 5) == (
            log.records[RECORDS // 2 + 1 : RECORDS // 2 + 6],
            log.records[RECORDS // 2 + 5].number,
        )
        assert isinstance(services.views, Projector)
        services.views.folded = half + 1
        assert await services.folded_records(0, 10_000) == (log.records[: RECORDS // 2 + 1], half + 1)


async def test_page_of_a_log_with_a_missing_end_is_refused() -> None:
    async with gapped() as (services, log):
        del log.records[-5:]
        number = log.records[-1].number + 1
        with pytest.raises(port.LogCutError, match=f"no longer has number {number}"):
            await record_pages.behind(services.log, parameters.LogQuery(limit=1_000))
        page = await record_pages.behind(services.log, parameters.LogQuery(limit=len(log.records)))
        assert len(page.items) == len(log.records)


async def test_view_as_of_a_number_in_a_gap_is_that_of_the_record_before() -> None:
    async with gapped() as (services, log), client(services) as http:
        moments = {
            number: (await http.get("/api/v1/moment", params={"asOf": number})).json()
            for number in range(log.last_number() + 1)
        }
        numbers = [record.number for record in log.records]
        del log.records[0]
        missing = await http.get("/api/v1/moment", params={"asOf": numbers[0] + 1})
    assert moments[0] == {"number": 0, "time": ""}
    assert all(
        moments[number + gap] == {"number": number + gap, "time": moments[number]["time"]}
        for number in numbers[:-1]
        for gap in range(3)
    )
    assert missing.status_code == 410


class MarkedLog(MemoryLog):
    """A log in which one offset of a partition has no record, as at the end of a transaction on Kafka."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        return [
            record for record in await super().read(topic, partition, start, limit + 1) if record.offset != 1
        ]


async def test_position_without_a_record_is_refused() -> None:
    async with serving(Story(3).opening(), MarkedLog()) as services, client(services) as http:
        answers = [
            await http.get("/api/v1/bindings", params={"asOf": f"clusters/0/{offset}"}) for offset in range(3)
        ]
    assert [answer.status_code for answer in answers] == [200, 400, 200]
