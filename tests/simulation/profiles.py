"""Profiles of simulated worlds: members, initial state, possible moves, and the end of a run."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.simulation import specs
from tests.simulation import checks, kinds, priorities, quotas, storms, timeline, world
from tests.simulation.moves import edits, faults, playing
from tests.simulation.world import Move, Scope, World

TOLD_MAX: Final = 3
"""Failing seeds after which a run stops; each is reported in full."""


class Profile(Struct, frozen=True):
    name: str
    members: Sequence[specs.MemberSpec]
    begin: Callable[[World], Awaitable[None]]
    weights: dict[Move, int]
    end: Callable[[World], Awaitable[None]]
    scope: Scope = world.EDITS


EDITS: Final = Profile("edits", world.MEMBERS, World.start, edits.WEIGHTS, faults.well)
STORMS: Final = Profile("storms", storms.MEMBERS, storms.begin, storms.WEIGHTS, storms.end, storms.SCOPE)
PRIORITIES: Final = Profile(
    "priorities",
    priorities.MEMBERS,
    priorities.begin,
    priorities.WEIGHTS,
    faults.well,
    scope=priorities.SCOPE,
)
QUOTAS: Final = Profile("quotas", world.MEMBERS, World.start, quotas.WEIGHTS, faults.well, quotas.SCOPE)
KINDS: Final = Profile("kinds", kinds.MEMBERS, World.start, kinds.WEIGHTS, faults.well, kinds.SCOPE)
ALL: Final = {profile.name: profile for profile in (EDITS, STORMS, PRIORITIES, QUOTAS, KINDS)}


class Played(Struct, frozen=True):
    """A completed run: the final world, descriptions of its moves, and all violations."""

    world: World
    told: list[str]
    wrong: list[str]


async def play(profile: Profile, seed: int, count: int) -> Played:
    """Run a seed; a world that does not become stable is a violation too."""
    played, lines = World(seed, profile.members, profile.scope), list[str]()
    await profile.begin(played)
    try:
        await playing.play(played, count, lines, profile.weights, profile.end)
    except AssertionError as error:
        return Played(played, lines, [str(error)])
    return Played(played, lines, await checks.check(played))


async def is_violated(profile: Profile, promise: str, seeds: int, count: int) -> bool:
    """Whether one of the first seeds violates an invariant, whose violations begin with ``promise``."""
    for seed in range(seeds):
        if any(line.startswith(promise) for line in (await play(profile, seed, count)).wrong):
            return True
    return False


async def failing(profile: Profile, seeds: range, count: int) -> str:
    """Return violations of failing seeds, the command to repeat each, and a timeline; empty if all pass."""
    violations: list[str] = []
    for seed in seeds:
        played = await play(profile, seed, count)
        if played.wrong:
            violations.append(f"python -m tests.simulation {profile.name} {seed} {count}")
            violations += played.wrong
            violations += await timeline.around(played.world, played.wrong)
        if len(violations) and violations.count("") >= TOLD_MAX:
            break
    return "\n".join(violations)
