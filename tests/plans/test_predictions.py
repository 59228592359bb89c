"""Plan a change, then really make it: the prediction equals what the live engine does.

Random worlds are brought to rest, random changes are planned on a fork, and then made. The placements at the end
must be equal, and the same decisions must come in the same order at the same instants.
"""

import pytest

from engine.plans import comparison, fork_log
from engine.plans.fork import Fork
from engine.plans.questions import Input
from events import records
from tests.plans.worlds import PLANNED, decided, placements, rested
from tests.rounds import ROUNDS
from tests.simulation import world

_SEEDS = 150 * ROUNDS
_BATCH = 50
_CHANGES = 3
_HORIZON_MS = 900_000


async def differences(seed: int) -> str:
    """Plan random changes, make them, and return how the outcomes differ; empty if they are equal."""
    played = await rested(seed)
    forked = await fork_log.fork(played.log)
    planned = Fork(forked, played.specs, played.now_ms)
    number = played.log.last_number()
    names = [await played.chance.choice(PLANNED)(played) for _ in range(_CHANGES)]
    made = await played.log.read_all(number, 1_000)
    inputs = [
        Input(record=records.record(record.topic, record.partition, record.key, record.headers, record.value))
        for record in made
    ]
    await planned.start()
    before = len(forked.added)
    await planned.run(inputs, [], _HORIZON_MS)
    await played.settle(_HORIZON_MS)
    if placements(planned.worker) != placements(played.worker):
        return f"{seed}: other placements after {names}"
    if compared(planned, forked.added[before:]) != comparison.start_of(planned.worker.folds, {}).workloads:
        return f"{seed}: a changed binding was not compared after {names}"
    actual = decided(await played.log.read_all(number, 1_000_000))
    if decided(forked.added[before:]) != actual:
        return f"{seed}: other decisions after {names}"
    return ""


def compared(planned: Fork, added: list[records.StoredRecord]) -> dict[str, comparison.Workload]:
    """Return the bindings after a change: those that were compared as they are now, the others as they were."""
    before, after = comparison.compared(planned.before, planned.worker.folds, added, ())
    others = {key: workload for key, workload in planned.before.workloads.items() if key not in before}
    return others | after


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_plan_predicts_each_decision(start: int) -> None:
    differing = [await differences(seed) for seed in range(start, start + _BATCH)]
    assert [difference for difference in differing if difference] == []


async def test_planning_writes_nothing_to_the_log() -> None:
    played = await rested(1)
    number, ends = played.log.last_number(), dict(played.log.ends())
    assert await differences_of_a_fork(played) > 0
    assert (played.log.last_number(), dict(played.log.ends())) == (number, ends)


async def differences_of_a_fork(played: world.World) -> int:
    """Taint all clusters on a fork; return the number of records that only the fork has."""
    forked = await fork_log.fork(played.log)
    planned = Fork(forked, played.specs, played.now_ms)
    await planned.start()
    await planned.run([], [], _HORIZON_MS)
    return len(forked.added)
