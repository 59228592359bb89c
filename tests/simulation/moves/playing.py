"""Play random moves with turns between them."""

from collections.abc import Awaitable, Callable

from tests.simulation.moves import edits, faults
from tests.simulation.world import START_MS, Move, World


async def play(
    world: World,
    count: int,
    lines: list[str] | None = None,
    weights: dict[Move, int] = edits.WEIGHTS,
    end: Callable[[World], Awaitable[None]] = faults.well,
) -> None:
    """Make ``count`` random moves, call ``end``, and run turns until nothing is left to do.

    Up to three turns follow each move. The time and the description of each move are appended to ``lines``.
    """
    for _ in range(count):
        (move,) = world.chance.choices(list(weights), list(weights.values()))
        at_s = (world.now_ms - START_MS) / 1_000
        line = await move(world)
        if lines is not None:
            lines.append(f"{at_s:11.3f} s  {line}")
        for _ in range(world.chance.randrange(4)):
            await world.turn()
    await end(world)
    await world.settle()
