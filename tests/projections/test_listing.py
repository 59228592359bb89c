"""Every change that a list shows has a number of its own, and an event under it, on every kind."""

import pytest

from engine.log.memory import MemoryLog
from tests.projections import listing_checker
from tests.projections.stories import Story
from tests.simulation import checks, moves, world


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_a_list_shows_otherwise_has_a_number_and_an_event(seed: int) -> None:
    played = world.World(seed)
    await played.start()
    await moves.play(played, 25)
    assert await listing_checker.check(await checks.everything(played.log)) == []


@pytest.mark.parametrize("seed", range(3))
async def test_a_deletion_shows_the_object_as_the_list_before_did(seed: int) -> None:
    story, log = Story(seed), MemoryLog()
    await log.append(story.opening())
    for _ in range(40):
        await log.append(story.more())
    assert await listing_checker.check(await log.read_all(0, 10_000)) == []
