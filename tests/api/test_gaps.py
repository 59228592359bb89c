"""Logs with gaps in their numbers, as on Kafka: feeds stay behind the views, and no reader waits forever."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from engine.http.query import live_feed, parameters, record_pages
from engine.http.services import Services
from engine.log import port
from projections.runner import Projector
from tests.api.servers import serving
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
        told = [int((await anext(feed)).id or 0) for _ in log.records]

        assert told == [record.number for record in log.records]


async def test_known_records_end_where_the_views_have_folded() -> None:
    async with gapped() as (services, log):
        half = log.records[RECORDS // 2].number
        assert await services.known(half, 5) == (
            log.records[RECORDS // 2 + 1 : RECORDS // 2 + 6],
            log.records[RECORDS // 2 + 5].number,
        )
        assert isinstance(services.views, Projector)
        services.views.folded = half + 1
        assert await services.known(0, 10_000) == (log.records[: RECORDS // 2 + 1], half + 1)


async def test_page_of_a_log_with_a_missing_end_is_refused() -> None:
    async with gapped() as (services, log):
        del log.records[-5:]
        number = log.records[-1].number + 1
        with pytest.raises(port.LogCutError, match=f"no longer has number {number}"):
            await record_pages.behind(services.log, parameters.LogQuery(limit=1_000))
        page = await record_pages.behind(services.log, parameters.LogQuery(limit=len(log.records)))
        assert len(page.items) == len(log.records)
