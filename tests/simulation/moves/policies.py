"""Moves with propagation policies, and the parts of their specs."""

from collections.abc import Callable

from events import keys, policies
from events.shapes import PolicyRef
from tests.builders.manifests import POLICIES, manifest, raw, selector
from tests.simulation.moves import placements, suspensions
from tests.simulation.moves.clusters import TAINTS
from tests.simulation.world import World


def _affinity(world: World) -> dict[str, object]:
    """Nothing, or that workloads with the same label are kept together or apart."""
    kind = world.chance.choice(("", "affinity", "antiAffinity"))
    return {"workloadAffinity": {kind: {"groupByLabelKey": "tier"}}} if kind else {}


def placement(world: World) -> dict[str, object]:
    chance = world.chance
    fields: dict[str, object] = _affinity(world) if world.scope.is_grouped else {}
    names = chance.sample(world.names, chance.randrange(1, 1 + len(world.names)))
    fields |= chance.choice(
        [
            {},
            {"clusterAffinity": {"clusterNames": names}},
            {"clusterAffinity": {"exclude": names[:2]}},
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"zone-class": "edge"}}}},
            {
                "clusterAffinities": [
                    {"affinityName": "primary", "clusterNames": names[:1]},
                    {"affinityName": "backup", "clusterNames": list(world.names)},
                ]
            },
        ]
    )
    fields |= chance.choice(
        [
            {},
            {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
            {"replicaScheduling": divided("Aggregated")},
            {"replicaScheduling": divided("Weighted")},
            {"replicaScheduling": divided("Weighted", {"dynamicWeight": "AvailableReplicas"})},
            {"replicaScheduling": divided("Weighted", {"dynamicWeight": "AvailableReplicas"})},
        ]
    )
    if chance.random() < 0.5:
        seconds = chance.choice([{}, {"tolerationSeconds": 0}, {"tolerationSeconds": 30}])
        fields["clusterTolerations"] = [{"key": chance.choice(TAINTS), "operator": "Exists", **seconds}]
    return placements.with_random_field(world, fields) if world.scope.is_varied else fields


def divided(preference: str, weights: dict[str, str] | None = None) -> dict[str, object]:
    strategy: dict[str, object] = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": preference,
    }
    return strategy if weights is None else strategy | {"weightPreference": weights}


def failover(world: World) -> dict[str, object]:
    """Failover settings that tolerate at least the start-up time; shorter ones would move workloads forever."""
    chance = world.chance
    mode = chance.choice(["Gracefully", "Directly", "Never"])
    behavior: dict[str, object] = {
        "decisionConditions": {"tolerationSeconds": chance.choice([5, 30, 60])},
        "purgeMode": mode,
        **state_preservation(world),
    }
    return behavior | {"gracePeriodSeconds": chance.choice([1, 30])} if mode == "Gracefully" else behavior


def state_preservation(world: World) -> dict[str, object]:
    """Nothing, or a rule that preserves a status value which members report, or one that they never report."""
    path = world.chance.choice(["", "", "{.readyReplicas}", "{.nowhere}"])
    return {"statePreservation": {"rules": [{"aliasLabelName": "kept", "jsonPath": path}]}} if path else {}


async def apply_policy(world: World) -> str:
    chance = world.chance
    name = chance.choice(world.scope.policies)
    selectors = [selector(kind=kind) for kind in world.scope.selects]
    if chance.random() < 0.3:
        selectors = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": chance.choice(world.scope.workloads)}
        ]
    spec: dict[str, object] = {
        "resourceSelectors": selectors,
        "placement": placement(world),
        "priority": chance.randrange(3),
        "preemption": chance.choice(["Always", "Never"]),
    }
    if chance.random() < 0.15:
        spec["suspension"] = {"dispatching": True}
    if chance.random() < 0.5:
        spec["propagateDeps"] = True
    if chance.random() < 0.1:
        spec["activationPreference"] = "Lazy"
    if chance.random() < 0.3:
        spec["failover"] = {"application": failover(world)}
    spec |= suspensions.scheduler(world)
    await submit_policy(world, name, spec)
    return f"policy {name} {spec}"


async def submit_policy(world: World, name: str, spec: dict[str, object]) -> None:
    written = manifest(POLICIES, "PropagationPolicy", name, "default", spec=spec)
    key = keys.object_key("PropagationPolicy", "default", name)
    await world.submit(policies.PolicyApplied(manifest=raw(written)), key, 0)


async def submit_any_policy(world: World, make: Callable[[World, str], dict[str, object]]) -> str:
    """Write one of the policies with a spec from ``make``."""
    name = world.chance.choice(world.scope.policies)
    spec = make(world, name)
    await submit_policy(world, name, spec)
    return f"policy {name} {spec}"


async def delete_policy(world: World) -> str:
    name = world.chance.choice(world.scope.policies)
    ref = PolicyRef(kind="PropagationPolicy", name=name, namespace="default")
    await world.submit(
        policies.PolicyDeleted(policy=ref), keys.object_key("PropagationPolicy", "default", name), 0
    )
    return f"policy {name} deleted"
