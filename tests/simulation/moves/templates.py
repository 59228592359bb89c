"""Moves of users with templates: applied, deleted, rebalanced, and deleted after an eviction."""

from collections.abc import Iterable

from events import keys, specs
from events.shapes import WorkloadRef
from tests.builders import inputs
from tests.builders.manifests import manifest, raw
from tests.simulation import classes
from tests.simulation.world import World


def template(world: World, kind: str, name: str) -> dict[str, object]:
    chance = world.chance
    document = manifest(
        "apps/v1" if kind == "Deployment" else "v1",
        kind,
        name,
        "default",
        metadata={"labels": {"tier": chance.choice("ab")}},
    )
    if kind == "Deployment":
        requests = chance.choice(world.scope.requests)
        container = {"name": "main", "image": "nginx", "resources": {"requests": requests}}
        document["spec"] = {
            "replicas": chance.choice(world.scope.replicas),
            "template": {
                "spec": {"containers": [container], "volumes": _volumes(world), **classes.of_pod(world)}
            },
        }
    else:
        document["data"] = {"value": str(chance.randrange(3))}
    return document


def _volumes(world: World) -> list[dict[str, object]]:
    """References to a random choice of ConfigMaps, existing or not."""
    if "ConfigMap" not in world.scope.kinds:
        return []
    names = world.chance.sample(world.scope.workloads, world.chance.randrange(3))
    return [{"name": name, "configMap": {"name": name}} for name in names]


def _choose(world: World, kinds: Iterable[str]) -> tuple[str, str]:
    """Return the kind and the name of a template."""
    return world.chance.choice(list(kinds)), world.chance.choice(world.scope.workloads)


async def apply_template(world: World) -> str:
    return await _apply(world, *_choose(world, world.scope.kinds))


async def _apply(world: World, kind: str, name: str) -> str:
    key = keys.binding_key(kind, "default", name)
    written = template(world, kind, name)
    await world.submit(inputs.applied(written), key, keys.shard_of(key))
    return f"apply {key} {written.get('spec', '')}"


async def delete_template(world: World) -> str:
    return await _delete(world, *_choose(world, sorted(set(world.scope.kinds))))


async def _delete(world: World, kind: str, name: str) -> str:
    key = keys.binding_key(kind, "default", name)
    ref = WorkloadRef(
        api_version="apps/v1" if kind == "Deployment" else "v1", kind=kind, name=name, namespace="default"
    )
    deletion = specs.TemplateDeleted(template=ref, orphans=world.chance.random() < 0.2)
    await world.submit(deletion, key, keys.shard_of(key))
    return f"delete {key}{' and orphan its workload' * deletion.orphans}"


async def recreate(world: World) -> str:
    """Delete a template and create it again, before the engine has seen either."""
    kind, name = _choose(world, world.scope.kinds)
    return f"{await _delete(world, kind, name)}, {await _apply(world, kind, name)}"


async def rebalance(world: World) -> str:
    chance = world.chance
    workloads = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
        for name in chance.choices([*world.scope.workloads, "nobody"], k=chance.randrange(1, 5))
    ]
    spec: dict[str, object] = {"workloads": workloads}
    if chance.random() < 0.4:
        spec["ttlSecondsAfterFinished"] = chance.choice([0, 60])
    name = chance.choice(["r1", "r2"])
    written = manifest("apps.karmada.io/v1alpha1", "WorkloadRebalancer", name, spec=spec)
    key = keys.rebalancer_key(name)
    await world.submit(specs.RebalancerApplied(manifest=raw(written)), key, keys.shard_of(key))
    return f"rebalance {name} {spec}"


async def delete_rebalancer(world: World) -> str:
    name = world.chance.choice(["r1", "r2"])
    key = keys.rebalancer_key(name)
    await world.submit(specs.RebalancerDeleted(name=name), key, keys.shard_of(key))
    return f"rebalancer {name} deleted"


async def allow_deletion(world: World) -> str:
    """Allow the deletion of an evicted workload, sometimes of one that was not evicted, or not yet."""
    chance = world.chance
    left = [
        (binding.template.ref, task.cluster)
        for fold in world.worker.folds
        for _, binding in sorted(fold.state.bindings.items())
        for task in binding.tasks
        if binding.template is not None
    ]
    if left and chance.random() < 0.8:
        ref, cluster = chance.choice(left)
    else:
        name, cluster = chance.choice(world.scope.workloads), chance.choice(world.names)
        ref = WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default")
    key = ref.binding_key
    await world.submit(specs.DeletionAllowed(template=ref, cluster=cluster), key, keys.shard_of(key))
    return f"{key} may be deleted in {cluster}"
