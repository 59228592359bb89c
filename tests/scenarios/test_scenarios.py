"""Each scenario from the failure to the rebalance, which is planned first, exact to the millisecond, and verified."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from engine.deciders import cluster_health
from engine.plans import fork_log
from engine.plans.fork import Fork
from engine.plans.questions import Input
from engine.proof import verification
from engine.simulation import defaults, specs
from events import (
    cluster_decisions,
    codec,
    decisions,
    keys,
    kube_objects,
    rebalance_decisions,
    records,
    shapes,
    topics,
)
from events.json_values import Json
from events.validation import verdicts
from tests.builders.inputs import deployment, key, policy, rebalancer, ref, taint_policy, template
from tests.builders.manifests import AGGREGATED, DYNAMIC, on, selector
from tests.simulation.world import World

PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
WEB: Final = key("web")
CONFIRM_S: Final = cluster_health.CONFIRM_MS // 1000
UNHEALTHY_S: Final = 60
MEMBERS: Final = [
    specs.MemberSpec(
        name=name,
        nodes=(specs.NodeGroup(count=1, allocatable={"cpu": "12", "memory": "64Gi", "pods": "20"}),),
        apis=defaults.APIS,
        startup_ms=1_000,
    )
    for name in ("member1", "member2")
]
FAILOVER: Final = {
    "application": {"decisionConditions": {"tolerationSeconds": UNHEALTHY_S}, "purgeMode": "Directly"}
}


class Scenario(World):
    """Two equal members, with methods for inputs, faults and time."""

    def __init__(self) -> None:
        super().__init__(0, MEMBERS)

    async def inputs(self, *events: shapes.Event) -> None:
        """Append these inputs, and process their immediate consequences."""
        for data in events:
            manifest = getattr(data, "manifest", None)
            name = verdicts.key_of(data, None if manifest is None else kube_objects.read_head(manifest))
            topic = data.event_type.topic
            await self.submit(data, name, keys.shard_of(name) if topic == topics.SPECS else 0)
        await self.settle(0)

    async def fails(self, member: str) -> None:
        await self.members.fault(member, "down")
        await self.settle(0)

    async def is_slow(self, member: str) -> None:
        await self.members.fault(member, "slow", 1_000_000)
        await self.settle(0)

    async def is_well(self, member: str) -> None:
        await self.members.heal(member)
        await self.settle(0)

    async def passes(self, seconds: float) -> None:
        """Advance the time; each timer fires at its due time."""
        end_ms = self.now_ms + round(seconds * 1000)
        await self.settle(end_ms - self.now_ms)
        self.now_ms = end_ms
        await self.settle(0)

    async def rebalances(self) -> None:
        """Plan a rebalance of the workload, carry it out, and compare its clusters with the plan."""
        planned = Fork(await fork_log.fork(self.log), self.specs, self.now_ms)
        await planned.start()
        await self.inputs(rebalancer("again", ref("web")))
        (made,) = await self.log.read_all(planned.number, 1)
        record = records.record(made.topic, made.partition, made.key, made.headers, made.value)
        await planned.run([Input(record=record)], [], 0)
        binding = planned.worker.folds[keys.shard_of(WEB)].state.bindings[WEB]
        assert dict(binding.clusters) == self.placed()

    def placed(self, name: str = WEB) -> dict[str, int]:
        """Return the placement of a binding."""
        return dict(self.worker.folds[keys.shard_of(name)].state.bindings[name].clusters)

    def runs(self) -> dict[str, int]:
        """Return the ready pods of all workloads by member."""
        ready = [pod.cluster for pod in self.members.pods(None, None) if pod.ready]
        return {name: ready.count(name) for name in sorted(set(ready))}

    async def event_types(self) -> list[str]:
        """Return the types of all decisions and reports about the binding, and of judgements of its clusters."""
        types: list[str] = []
        for record in await self.log.read_all(0, self.log.last_number()):
            decoded = codec.decode(record)
            if isinstance(decoded, codec.Decoded) and isinstance(
                decoded.data,
                cluster_decisions.ClusterJudged
                | decisions.EvictionStarted
                | decisions.ScheduleDecided
                | decisions.EvictionFinished
                | decisions.RescheduleTriggered
                | rebalance_decisions.RebalanceFinished,
            ):
                types.append(type(decoded.data).__name__)
        return types


@pytest.fixture
async def scenario() -> AsyncIterator[Scenario]:
    """Two members; after the test the log is verified."""
    scenario = Scenario()
    await scenario.start()
    await scenario.settle(0)
    yield scenario
    assert (await verification.verify(scenario.log)).findings == []


async def test_scenario_1_replicas_return_to_the_recovered_cluster(scenario: Scenario) -> None:
    await scenario.inputs(
        taint_policy("not-ready"), policy("web", on("member1", "member2", scheduling=DYNAMIC))
    )
    await scenario.inputs(deployment("web", 4))
    await scenario.passes(2)
    assert scenario.placed() == scenario.runs() == {"member1": 2, "member2": 2}

    await scenario.fails("member1")
    await scenario.passes(CONFIRM_S - 0.001)
    assert scenario.placed() == {"member1": 2, "member2": 2}, "it may be back in a moment"
    await scenario.passes(0.001)
    assert scenario.placed() == {"member2": 4}
    await scenario.passes(2)
    assert scenario.runs()["member2"] == 4

    await scenario.is_well("member1")
    await scenario.passes(CONFIRM_S)
    assert scenario.placed() == {"member2": 4}, "what runs stays where it is until the user decides"
    await scenario.rebalances()
    assert scenario.placed() == {"member1": 2, "member2": 2}
    await scenario.passes(2)
    assert scenario.runs() == {"member1": 2, "member2": 2}

    event_types = await scenario.event_types()
    assert [name for index, name in enumerate(event_types) if name not in event_types[:index]] == [
        "ScheduleDecided",
        "ClusterJudged",
        "EvictionStarted",
        "EvictionFinished",
        "RescheduleTriggered",
        "RebalanceFinished",
    ]


async def test_scenario_1_flapping_cluster_moves_nothing(scenario: Scenario) -> None:
    await scenario.inputs(
        taint_policy("not-ready"), policy("web", on("member1", "member2", scheduling=DYNAMIC))
    )
    await scenario.inputs(deployment("web", 4))
    for _ in range(20):
        await scenario.fails("member1")
        await scenario.passes(CONFIRM_S - 1)
        await scenario.is_well("member1")
        await scenario.passes(1)
    await scenario.passes(600)

    assert scenario.placed() == {"member1": 2, "member2": 2}
    assert "EvictionStarted" not in await scenario.event_types()


async def test_scenario_2_unhealthy_application_moves_and_spreads_again(
    scenario: Scenario,
) -> None:
    await scenario.inputs(policy("web", on("member1", "member2", scheduling=DYNAMIC), failover=FAILOVER))
    await scenario.is_slow("member1")
    await scenario.inputs(deployment("web", 4))
    await scenario.passes(UNHEALTHY_S - 1)
    assert scenario.placed() == {"member1": 2, "member2": 2}
    await scenario.passes(2)
    assert scenario.placed() == {"member2": 4}
    await scenario.passes(2)
    assert scenario.runs() == {"member2": 4}

    await scenario.is_well("member1")
    await scenario.passes(3_600)
    assert scenario.placed() == {"member2": 4}
    await scenario.rebalances()
    await scenario.passes(2)
    assert scenario.placed() == scenario.runs() == {"member1": 2, "member2": 2}


async def test_scenario_2_preempted_application_moves_and_spreads_again(
    scenario: Scenario,
) -> None:
    rank = template("vital", PRIORITY_CLASS, fields={"value": 1_000})
    await scenario.inputs(
        policy("ranks", on("member1", "member2"), selector(kind=PRIORITY_CLASS), namespace="")
    )
    await scenario.inputs(rank, policy("vital", on("member1"), selector("vital")))
    spread = on("member1", "member2", scheduling=DYNAMIC)
    await scenario.inputs(policy("web", spread, selector("web"), failover=FAILOVER), deployment("web", 4))
    await scenario.passes(2)
    assert scenario.runs() == {"member1": 2, "member2": 2}

    await scenario.inputs(deployment("vital", 12, priorityClassName="vital"))
    await scenario.passes(2)
    assert scenario.runs() == {"member1": 12, "member2": 2}, "the two of web gave way to the vital ones"
    await scenario.passes(UNHEALTHY_S)
    assert scenario.placed() == {"member2": 4}

    await scenario.inputs(deployment("vital", 1, priorityClassName="vital"))
    await scenario.passes(3_600)
    assert scenario.placed() == {"member2": 4}
    await scenario.rebalances()
    assert len(scenario.placed()) == 2
    await scenario.passes(2)
    assert scenario.runs() == {
        "member1": 1 + scenario.placed()["member1"],
        "member2": scenario.placed()["member2"],
    }


async def test_scenario_3_spread_replicas_gather_again(scenario: Scenario) -> None:
    await scenario.inputs(policy("big", on("member1"), selector("big")), deployment("big", 8))
    await scenario.inputs(policy("small", on("member2"), selector("small")), deployment("small", 6))
    await scenario.passes(2)
    await scenario.inputs(policy("web", on("member1", "member2", scheduling=AGGREGATED), selector("web")))
    await scenario.inputs(deployment("web", 8))
    await scenario.passes(2)
    assert scenario.placed() == {"member1": 3, "member2": 5}

    await scenario.inputs(deployment("big", 1), deployment("small", 1))
    await scenario.passes(600)
    assert scenario.placed() == {"member1": 3, "member2": 5}
    await scenario.rebalances()
    assert len(scenario.placed()) == 1


async def test_scenario_4_replicas_return_from_the_backup_to_the_primary_cluster(scenario: Scenario) -> None:
    terms = [
        {"affinityName": "primary", "clusterNames": ["member1"]},
        {"affinityName": "backup", "clusterNames": ["member2"]},
    ]
    placement: Json = {
        "clusterAffinities": terms,
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }
    await scenario.inputs(taint_policy("not-ready"), policy("web", placement), deployment("web", 3))
    await scenario.passes(2)
    assert scenario.placed() == scenario.runs() == {"member1": 3}

    await scenario.fails("member1")
    await scenario.passes(CONFIRM_S)
    assert scenario.placed() == {"member2": 3}
    await scenario.is_well("member1")
    await scenario.passes(3_600)
    assert scenario.placed() == {"member2": 3}, "what runs stays where it is until the user decides"

    await scenario.rebalances()
    await scenario.passes(2)
    assert scenario.placed() == scenario.runs() == {"member1": 3}
