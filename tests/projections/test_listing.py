"""Every change that a list shows has a number of its own, and an event under it, on every kind."""

import pytest

from tests.projections import listing_checker
from tests.simulation import checks, moves, world

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_a_list_shows_otherwise_has_a_number_and_an_event(seed: int) -> None:
    played = world.World(seed)
    await played.start()
    await moves.play(played, 25)
    assert await listing_checker.check(await checks.everything(played.log)) == []
