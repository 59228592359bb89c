"""Every change in a list has its own number, and an event under it, for every kind."""

import pytest

from engine.log.memory import MemoryLog
from tests.projections import listing_checker
from tests.projections.stories import Story
from tests.simulation import checks, world
from tests.simulation.moves import playing


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_every_difference_between_lists_has_a_number_and_an_event(seed: int) -> None:
    played = world.World(seed)
    await played.start()
    await playing.play(played, 25)
    assert await listing_checker.check(await checks.everything(played.log)) == []


@pytest.mark.parametrize("seed", range(3))
async def test_deletion_shows_the_object_as_in_the_list_before(seed: int) -> None:
    story, log = Story(seed), MemoryLog()
    await log.append(story.opening())
    for _ in range(40):
        await log.append(story.more())
    assert await listing_checker.check(await log.read_all(0, 10_000)) == []
