"""Models of clusters that nothing simulates: built from the shards, they run what the log says."""

import pytest

from engine.plans import fork_log, member_models
from engine.plans.fork import Fork
from engine.simulation import member_fleet
from tests.plans.test_predictions import rested

Running = dict[str, tuple[object, ...]]


def running(members: member_fleet.Members, name: str) -> Running:
    """Return what a member runs, with the versions of its works and what is ready."""
    return {
        key: (each.version, each.known, each.replicas, each.ready, each.suspended, each.digest, each.template)
        for key, each in members.state_of(name).workloads.items()
        if not each.preserved
    }


@pytest.mark.parametrize("seed", range(30))
async def test_models_built_from_shards_run_what_the_log_says(seed: int) -> None:
    played = await rested(seed)
    forked = await fork_log.fork(played.log)
    planned = Fork(forked, (), played.now_ms)
    await planned.start()
    models = member_models.read(planned.worker.facts, ())
    assert [spec.name for spec in models.specs] == sorted(planned.worker.facts.fleet.names())
    read = member_fleet.Members(forked, lambda: played.now_ms, models.specs)
    await read.recover()
    # A cluster that is down may still run what it was to remove; it reports nothing, so no plan sees it.
    up = [name for name in read.names() if not read.state_of(name).faults.down]
    assert up == [name for name in up if not planned.members.state_of(name).faults.down]
    for name in up:
        assert running(planned.members, name) == running(read, name)
        assert planned.members.state_of(name).gone.keys() == read.state_of(name).gone.keys()
