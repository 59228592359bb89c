"""An observer of a recording, and what its log has of it."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.log import port
from engine.observer.observer import Observer
from events import codec, observations, shapes, topics
from tests import recordings
from tests.background import background
from tests.observer.playback import Playback

FIRST = 3_000
COUNT = 9_000


def recorded(count: int = COUNT) -> Playback:
    return Playback(itertools.islice(recordings.changes(recordings.of_scenario("burst")), count))


@asynccontextmanager
async def observing(access: Access, log: port.NumberedLog) -> AsyncGenerator[Observer]:
    api = MemberApi(access)
    observer = Observer(api, log, "/observed/test", lambda: 1_000)
    try:
        async with background(observer.run()):
            yield observer
    finally:
        await api.aclose()


async def observed(log: port.NumberedLog) -> list[shapes.Event]:
    events: list[shapes.Event] = []
    start = 0
    while batch := await log.read(topics.OBSERVATIONS, 0, start, 1_000):
        decoded = map(codec.decode, batch)
        events += [event.data for event in decoded if isinstance(event, codec.Decoded)]
        start = batch[-1].offset + 1
    return events


async def newest_versions(log: port.NumberedLog) -> dict[tuple[str, str, str], int]:
    """The newest version of each object in the log that is not deleted."""
    known_versions: dict[tuple[str, str, str], int] = {}
    for data in await observed(log):
        match data:
            case observations.ObjectObserved():
                known_versions[data.kind, data.namespace, data.name] = data.version
            case observations.ObjectVanished():
                known_versions.pop((data.kind, data.namespace, data.name), None)
            case _:
                pass
    return known_versions


def shown(playback: Playback) -> dict[tuple[str, str, str], int]:
    kinds = {change.head.kind for change in playback.changes}
    return {change.object_key: change.version for kind in kinds for change in playback.objects(kind)}


async def level(playback: Playback, log: port.NumberedLog) -> None:
    """Return when the log has the state that the API shows."""
    async with asyncio.timeout(60):
        while await newest_versions(log) != shown(playback):  # noqa: ASYNC110  # the log is polled as users do
            await asyncio.sleep(0.05)


async def versions(log: port.NumberedLog) -> list[tuple[tuple[str, str, str], int]]:
    """Objects and versions of the observations, without deletions that only a list showed."""
    return [
        ((data.kind, data.namespace, data.name), data.version)
        for data in await observed(log)
        if isinstance(data, observations.ObjectObserved | observations.ObjectVanished) and data.version
    ]


ROUND = 1_200
