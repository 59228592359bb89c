"""The observer on a log on Kafka: its records get numbers, and a second observer continues after them."""

import pytest

from engine.log.kafka import numbered_log
from tests.observer.observing import level, observed, observing, recorded, versions
from tests.observer.playback import playing
from tests.scaleout import logs

pytestmark = pytest.mark.kafka

FIRST = 400
COUNT = 800


async def test_observations_are_numbered_and_continued(kafka: str) -> None:
    playback = recorded(COUNT)
    address = await logs.prepared(kafka)
    async with playing(playback) as access:
        for shown in (FIRST, COUNT):
            playback.shown = shown
            async with numbered_log.opened(address) as log, observing(access, log):
                await level(playback, log)
                appended = await versions(log)
                assert len(appended) == len(set(appended))
    async with numbered_log.opened(address) as log:
        await log.wait_current()
        assert log.last_number() >= len(await observed(log))
