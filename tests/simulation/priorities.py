"""Simulation profile ``priorities``: too little capacity, so workloads preempt each other while clusters change."""

from typing import Final

from engine.simulation import defaults, specs
from tests.simulation import classes, quotas, storms
from tests.simulation.moves import clusters, faults, policies, suspensions, templates
from tests.simulation.world import Move, Scope, World

MEMBERS = [
    specs.MemberSpec(
        name=f"member{index}",
        nodes=(specs.NodeGroup(count=1, allocatable={"cpu": "8", "memory": "16Gi", "pods": "12"}),),
        labels={"zone-class": "edge" if index % 2 else "core"},
        apis=defaults.APIS,
        startup_ms=50,
    )
    for index in range(1, 4)
]
"""Members; too few for four workloads."""

_NAMES: Final = ("api", "db", "web", "batch", "cache")

SCOPE: Final = Scope(
    kinds=("Deployment",),
    workloads=_NAMES,
    policies=_NAMES,
    replicas=(2, 5, 9),
    requests=({"cpu": "500m"}, {"cpu": "1"}, {"cpu": "2"}),
)
"""Each workload has a policy with its name."""


async def begin(world: World) -> None:
    """Join all members, and create two PriorityClasses and a policy per workload."""
    await world.start()
    await world.settle()
    for name in ("high", "low"):
        await classes.submit_class(world, name, value=classes.CLASSES[name])
    for name in world.scope.policies:
        await policies.submit_policy(world, name, _spec(world, name))


async def policy(world: World) -> str:
    """Change the policy of one workload: its clusters and its priority."""
    return await policies.submit_any_policy(world, _spec)


def _spec(world: World, name: str) -> dict[str, object]:
    chance = world.chance
    dynamic = {"dynamicWeight": "AvailableReplicas"}
    scheduling = chance.choice([policies.divided("Aggregated"), policies.divided("Weighted", dynamic)])
    placement: dict[str, object] = {"replicaScheduling": scheduling}
    if chance.random() < 0.4:
        placement["clusterAffinity"] = {"clusterNames": chance.sample(world.names, 2)}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    ranked = classes.of_policy(world) if chance.random() < 0.8 else {}
    return {"resourceSelectors": [selector], "placement": placement, **ranked, **suspensions.scheduler(world)}


WEIGHTS: dict[Move, int] = {
    templates.apply_template: 10,
    templates.delete_template: 2,
    policy: 4,
    policies.delete_policy: 1,
    classes.priority_class: 3,
    classes.no_priority_class: 1,
    templates.rebalance: 2,
    templates.allow_deletion: 1,
    suspensions.suspend: 2,
    quotas.apply_quota: 1,
    quotas.delete_quota: 1,
    templates.recreate: 1,
    faults.fail_append: 1,
    faults.crash: 1,
    faults.keep_snapshot: 2,
    faults.crash_without_the_newest_snapshot: 1,
    faults.leap: 2,
    storms.taint_policy: 1,
    storms.flap: 1,
    storms.calm: 1,
    storms.hold: 1,
    storms.arrive: 2,
    clusters.join: 1,
    storms.worker_dies: 1,
    storms.members_die: 1,
    storms.wait: 12,
}
