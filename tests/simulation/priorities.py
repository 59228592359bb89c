"""Too little room for all: workloads of different priority take it from one another, while clusters come and go."""

from typing import Final

from engine.members import defaults, specs
from events import keys, policies
from events.shapes import PolicyRef, WorkloadRef
from events.specs import TemplateApplied, TemplateDeleted
from tests.simulation import moves, storms
from tests.simulation.moves import Move, raw
from tests.simulation.world import World

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
"""Few enough that four workloads do not fit."""

NAMES: Final = ("api", "db", "web", "batch", "cache")
_CLASSES: Final = {"high": 1_000, "middle": 10, "low": -10}
_API: Final = "scheduling.k8s.io/v1"


async def begin(world: World) -> None:
    """All members are in, and so are two of the classes, and each workload has a policy."""
    await world.start()
    await world.settle()
    for name in ("high", "low"):
        await _say_class(world, name, {"value": _CLASSES[name]})
    for name in NAMES:
        await _say_policy(world, name)


async def _say_class(world: World, name: str, fields: dict[str, object]) -> None:
    manifest = {"apiVersion": _API, "kind": "PriorityClass", "metadata": {"name": name}, **fields}
    key = keys.binding_key("PriorityClass", "", name)
    await world.say(TemplateApplied(manifest=raw(manifest)), key, keys.shard_of(key))


async def priority_class(world: World) -> str:
    chance = world.chance
    name = chance.choice(sorted(_CLASSES))
    fields: dict[str, object] = {"value": chance.choice([_CLASSES[name], _CLASSES[name] + 5])}
    if chance.random() < 0.2:
        fields["preemptionPolicy"] = "Never"
    if chance.random() < 0.2:
        fields["globalDefault"] = True
    await _say_class(world, name, fields)
    return f"class {name} {fields}"


async def no_priority_class(world: World) -> str:
    name = world.chance.choice(sorted(_CLASSES))
    key = keys.binding_key("PriorityClass", "", name)
    ref = WorkloadRef(api_version=_API, kind="PriorityClass", name=name)
    await world.say(TemplateDeleted(template=ref), key, keys.shard_of(key))
    return f"class {name} deleted"


async def policy(world: World) -> str:
    """One workload's policy: where it may go, and how important it is."""
    name = world.chance.choice(NAMES)
    return f"policy {name} {await _say_policy(world, name)}"


async def _say_policy(world: World, name: str) -> dict[str, object]:
    chance = world.chance
    preference: dict[str, object] = chance.choice(
        [
            {"replicaDivisionPreference": "Aggregated"},
            {
                "replicaDivisionPreference": "Weighted",
                "weightPreference": {"dynamicWeight": "AvailableReplicas"},
            },
        ]
    )
    placement: dict[str, object] = {"replicaScheduling": {"replicaSchedulingType": "Divided", **preference}}
    if chance.random() < 0.4:
        placement["clusterAffinity"] = {"clusterNames": chance.sample(world.names, 2)}
    spec: dict[str, object] = {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
        "placement": placement,
    }
    if chance.random() < 0.8:
        by = {"priorityClassName": chance.choice(sorted(_CLASSES))}
        spec["schedulePriority"] = chance.choice(
            [{"priorityClassSource": "KubePriorityClass", **by}] * 3
            + [{"priorityClassSource": "PodPriorityClass"}]
        )
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    key = keys.object_key("PropagationPolicy", "default", name)
    await world.say(policies.PolicyApplied(manifest=raw(manifest)), key, 0)
    return spec


async def no_policy(world: World) -> str:
    name = world.chance.choice(NAMES)
    ref = PolicyRef(kind="PropagationPolicy", name=name, namespace="default")
    await world.say(
        policies.PolicyDeleted(policy=ref), keys.object_key("PropagationPolicy", "default", name), 0
    )
    return f"policy {name} deleted"


async def workload(world: World) -> str:
    chance = world.chance
    name = chance.choice(NAMES)
    pod: dict[str, object] = {
        "containers": [
            {
                "name": "main",
                "image": "nginx",
                "resources": {"requests": {"cpu": chance.choice(["500m", "1", "2"])}},
            }
        ]
    }
    spec = {"replicas": chance.choice([2, 5, 9]), "template": {"spec": pod}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    key = keys.binding_key("Deployment", "default", name)
    await world.say(TemplateApplied(manifest=raw(manifest)), key, keys.shard_of(key))
    return f"apply {key} {spec}"


async def no_workload(world: World) -> str:
    name = world.chance.choice(NAMES)
    key = keys.binding_key("Deployment", "default", name)
    ref = WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default")
    await world.say(TemplateDeleted(template=ref), key, keys.shard_of(key))
    return f"delete {key}"


WEIGHTS: dict[Move, int] = {
    workload: 10,
    no_workload: 2,
    policy: 4,
    no_policy: 1,
    priority_class: 3,
    no_priority_class: 1,
    moves.rebalance: 2,
    moves.fail_append: 1,
    moves.crash: 1,
    moves.keep_snapshot: 2,
    moves.crash_without_the_newest_snapshot: 1,
    moves.leap: 2,
    storms.taint_policy: 1,
    storms.flap: 1,
    storms.calm: 1,
    storms.hold: 1,
    storms.arrive: 2,
    storms.join: 1,
    storms.worker_dies: 1,
    storms.members_die: 1,
    storms.wait: 12,
}
