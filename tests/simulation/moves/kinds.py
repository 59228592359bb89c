"""Moves with custom kinds, Jobs, StatefulSets and ClusterRoles: templates, interpreters and cluster-wide policies."""

from typing import Final

from events import keys, policies
from events.json_values import Json
from events.shapes import PolicyRef
from tests.builders import inputs, manifests
from tests.builders.manifests import CLUSTER_ROLE, FLINK, JOB, POLICIES, STATEFUL_SET, Kind, manifest, raw
from tests.simulation.moves import policies as policy_moves
from tests.simulation.world import World

_KINDS: Final = (FLINK, FLINK, FLINK, JOB, STATEFUL_SET, CLUSTER_ROLE)
_NAMES: Final = ("c1", "c2")
_READINGS: Final[tuple[tuple[str, str, Json], ...]] = (
    ("spec.size", "spec.requests", {}),
    ("spec.size", "", {"health": {"condition": {"type": "Ready"}}}),
    ("spec.slots", "", {"statusFields": [{"jsonPath": ".restarts", "aggregate": "Sum"}]}),
    ("", "", {"dependencies": [{"apiVersion": "v1", "kind": "ConfigMap", "namesPath": ".spec.needs"}]}),
)


def _document(world: World, kind: Kind, name: str) -> dict[str, object]:
    chance = world.chance
    namespace = "" if kind == CLUSTER_ROLE else "default"
    document = manifest(*kind, name, namespace, metadata={"labels": {"tier": chance.choice("ab")}})
    requests = chance.choice(world.scope.requests)
    pods = manifests.pod_template(name, requests=requests)
    count = chance.choice(world.scope.replicas)
    if kind == FLINK:
        document["spec"] = {
            "size": count,
            "slots": chance.randrange(4),
            "requests": requests,
            "needs": chance.sample(world.scope.workloads, 1),
        }
    elif kind == JOB:
        completions = chance.choice([{}, {"completions": 1}, {"completions": 4}, {"completions": 20}])
        document["spec"] = {"parallelism": count, **completions, "template": pods}
    elif kind == STATEFUL_SET:
        document["spec"] = {"replicas": count, "serviceName": name, "template": pods}
    else:
        document["rules"] = [
            {"apiGroups": [""], "resources": ["pods"], "verbs": [chance.choice(["get", "list"])]}
        ]
    return document


async def apply_kind(world: World) -> str:
    kind, name = world.chance.choice(_KINDS), world.chance.choice(world.scope.workloads)
    key = inputs.key(name, kind)
    document = _document(world, kind, name)
    await world.submit(inputs.applied(document), key, keys.shard_of(key))
    return f"apply {key} {document.get('spec', '')}"


async def delete_kind(world: World) -> str:
    kind, name = world.chance.choice(_KINDS), world.chance.choice(world.scope.workloads)
    key = inputs.key(name, kind)
    await world.submit(inputs.deleted(name, kind), key, keys.shard_of(key))
    return f"delete {key}"


async def recreate_kind(world: World) -> str:
    """Delete a template and create it again before the engine sees either."""
    kind, name = world.chance.choice(_KINDS), world.chance.choice(world.scope.workloads)
    key = inputs.key(name, kind)
    document = _document(world, kind, name)
    await world.submit(inputs.deleted(name, kind), key, keys.shard_of(key))
    await world.submit(inputs.applied(document), key, keys.shard_of(key))
    return f"recreate {key} {document.get('spec', '')}"


async def interpret(world: World) -> str:
    replicas, requests, fields = world.chance.choice(_READINGS)
    event = inputs.interpreter(replicas, requests, **fields)
    await world.submit(event, keys.object_key("ReplicaInterpreter", "", "flink"), 0)
    return f"FlinkJobs are read by {replicas!r} {requests!r} {fields}"


async def interpret_no_more(world: World) -> str:
    key = keys.object_key("ReplicaInterpreter", "", "flink")
    await world.submit(policies.InterpreterDeleted(name="flink"), key, 0)
    return "FlinkJobs have no interpreter"


async def apply_cluster_policy(world: World) -> str:
    chance = world.chance
    name = chance.choice(_NAMES)
    kinds = chance.sample(sorted({*_KINDS, manifests.DEPLOYMENT}), chance.randrange(1, 5))
    spec: dict[str, object] = {
        "resourceSelectors": [manifests.selector(kind=kind) for kind in kinds],
        "placement": policy_moves.placement(world),
        "priority": chance.randrange(3),
        "preemption": chance.choice(["Always", "Never"]),
        "propagateDeps": chance.random() < 0.5,
    }
    if chance.random() < 0.3:
        spec["failover"] = {"application": policy_moves.failover(world)}
    document = manifest(POLICIES, "ClusterPropagationPolicy", name, spec=spec)
    key = keys.object_key("ClusterPropagationPolicy", "", name)
    await world.submit(policies.PolicyApplied(manifest=raw(document)), key, 0)
    return f"cluster policy {name} {spec}"


async def delete_cluster_policy(world: World) -> str:
    name = world.chance.choice(_NAMES)
    ref = PolicyRef(kind="ClusterPropagationPolicy", name=name)
    await world.submit(policies.PolicyDeleted(policy=ref), ref.object_key, 0)
    return f"cluster policy {name} deleted"
