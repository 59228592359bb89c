"""What a simulated world is made of: its members, how it begins, what may happen in it, and how it ends."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.members import specs
from tests.simulation import checks, moves, priorities, storms, timeline, world
from tests.simulation.moves import Move
from tests.simulation.world import Scope, World

TOLD_MAX: Final = 3
"""So many seeds that fail are told in full."""


class Profile(Struct, frozen=True):
    name: str
    members: Sequence[specs.MemberSpec]
    begin: Callable[[World], Awaitable[None]]
    weights: dict[Move, int]
    end: Callable[[World], Awaitable[None]]
    scope: Scope = world.EDITS


EDITS: Final = Profile("edits", world.MEMBERS, World.start, moves.WEIGHTS, moves.well)
STORMS: Final = Profile("storms", storms.MEMBERS, storms.begin, storms.WEIGHTS, storms.end, storms.SCOPE)
PRIORITIES: Final = Profile(
    "priorities",
    priorities.MEMBERS,
    priorities.begin,
    priorities.WEIGHTS,
    moves.well,
    scope=priorities.SCOPE,
)
ALL: Final = {profile.name: profile for profile in (EDITS, STORMS, PRIORITIES)}


class Played(Struct, frozen=True):
    """A run: the world at its end, its moves, and what is wrong with it."""

    world: World
    told: list[str]
    wrong: list[str]


async def play(profile: Profile, seed: int, count: int) -> Played:
    """Plays a seed; a world that does not come to rest is wrong as well."""
    played, told = World(seed, profile.members, profile.scope), list[str]()
    await profile.begin(played)
    try:
        await moves.play(played, count, told, profile.weights, profile.end)
    except AssertionError as error:
        return Played(played, told, [str(error)])
    return Played(played, told, await checks.check(played))


async def failing(profile: Profile, seeds: range, count: int) -> str:
    """What is wrong with some seeds, how each is played again, and the story around it; nothing where all is well."""
    found: list[str] = []
    for seed in seeds:
        played = await play(profile, seed, count)
        if played.wrong:
            found.append(f"python -m tests.simulation {profile.name} {seed} {count}")
            found += played.wrong
            found += await timeline.around(played.world, played.wrong)
        if len(found) and found.count("") >= TOLD_MAX:
            break
    return "\n".join(found)
