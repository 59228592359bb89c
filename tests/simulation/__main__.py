"""Plays a seed again and tells its moves and what the checks say."""

import asyncio
import sys

from tests.simulation import checks, moves, world


async def tell(seed: int, count: int) -> None:
    played = world.World(seed)
    await played.start()
    for line in await moves.play(played, count):
        sys.stdout.write(f"{line}\n")
    for wrong in await checks.check(played):
        sys.stdout.write(f"WRONG {wrong}\n")


asyncio.run(tell(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40))
