"""The observer under each fault of its API, 20 rounds side by side: nothing lost, nothing twice, nothing written."""

import asyncio
import functools
import itertools
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from engine.agent.member_api import MemberApi
from engine.log import local
from engine.observer.observer import Observer
from tests import recordings
from tests.observer.disturbing import FAULTS, Disturbing, disturb, in_rounds
from tests.observer.observing import newest_versions, shown, versions
from tests.observer.playback import Playback
from tests.relay import Relay

pytestmark = pytest.mark.slow

FIRST: Final = 150
COUNT: Final = 350
DELETED: Final = 30
KINDS: Final = frozenset(
    {"Cluster", "PropagationPolicy", "ResourceBinding", "Deployment", "StatefulSet", "Event"}
)
"""Each one is watched by all rounds at once, and a process has 1,024 files."""


@asynccontextmanager
async def observing(api: Disturbing, log: local.MemoryLog) -> AsyncGenerator[Relay]:
    """Serve an API, and observe it, until the block ends."""
    async with api.serving() as relay:
        client = MemberApi(api.access(relay))
        observer = Observer(client, log, "/observed/test", lambda: api.clock_ms)
        running = asyncio.create_task(observer.run())
        try:
            yield relay
            assert not running.done(), running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.aclose()


async def level(playback: Playback, log: local.MemoryLog) -> None:
    """Return when the log has the state that the API shows."""
    async with asyncio.timeout(60):
        while await newest_versions(log) != shown(playback):
            await log.wait(log.last_number())


@functools.cache
def first_changes() -> tuple[recordings.Change, ...]:
    """The first changes of some kinds in a recording, then the deletion of each third object."""
    recorded = (
        change for change in recordings.changes(recordings.of_scenario("burst")) if change.head.kind in KINDS
    )
    changes = list(itertools.islice(recorded, COUNT - DELETED))
    objects = {change.object_key: change for change in changes if change.head.kind != "Event"}
    version = changes[-1].version
    for change in [*objects.values()][: 3 * DELETED : 3]:
        version += 1
        text = bytes(change.manifest).replace(
            f'"resourceVersion":"{change.version}"'.encode(), f'"resourceVersion":"{version}"'.encode()
        )
        metadata = msgspec.structs.replace(change.head.metadata, resource_version=str(version))
        head = msgspec.structs.replace(change.head, metadata=metadata)
        changes.append(recordings.Change("DELETED", head, msgspec.Raw(text)))
    return tuple(changes)


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_change_is_observed_once(fault: str, tmp_path: Path) -> None:
    await in_rounds(lambda seed: observed_once(fault, seed, tmp_path))


def changing(playback: Playback, api: Disturbing) -> Iterator[None]:
    """Show more of the recording, until its end."""
    while playback.shown < COUNT:
        playback.shown = min(playback.shown + api.chance.randrange(1, 60), COUNT)
        yield


async def observed_once(fault: str, seed: int, directory: Path) -> None:
    playback, log = Playback(first_changes()), local.MemoryLog()
    playback.shown = FIRST
    api = Disturbing(playback.routes(), seed, directory)
    async with observing(api, log) as relay:
        await level(playback, log)
        await disturb(fault, api, relay, changing(playback, api))
        await level(playback, log)
    appended = await versions(log)
    repeated = [change for change in set(appended) if appended.count(change) > 1]
    assert not repeated, f"{fault} in round {seed}: twice in the log"
    if not api.happened["gone"]:
        # After a 410, and only then, several changes of an object are one.
        later = {(change.object_key, change.version) for change in playback.changes[FIRST:]}
        assert later <= set(appended), f"{fault} in round {seed}: lost"
    assert playback.refused == 0, f"{fault} in round {seed}: the API was written to"
