"""Moves with override policies."""

from events import keys, policies
from events.shapes import WorkloadRef
from tests.builders import inputs
from tests.builders.manifests import POLICIES, manifest
from tests.simulation.world import World


def overriders(world: World) -> dict[str, object]:
    """Overriders that apply to every kind, to Deployments only, or to none."""
    chance = world.chance
    mark = {"site": chance.choice("ab")}
    return chance.choice(
        [
            {"labelsOverrider": [{"operator": chance.choice(["add", "replace", "remove"]), "value": mark}]},
            {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": chance.choice("12")}]},
            {"argsOverrider": [{"containerName": "main", "operator": "add", "value": ["-v"]}]},
            {"plaintext": [{"path": "/metadata/annotations", "operator": "add", "value": mark}]},
            {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": chance.randrange(4)}]},
            {"plaintext": [{"path": "/spec/nowhere", "operator": "remove"}]},
        ]
    )


def _override(world: World) -> tuple[str, str, str]:
    kind, namespace = world.chance.choice(
        [("OverridePolicy", "default"), ("OverridePolicy", "default"), ("ClusterOverridePolicy", "")]
    )
    return kind, namespace, world.chance.choice(["o1", "o2"])


async def apply_override(world: World) -> str:
    chance = world.chance
    kind, namespace, name = _override(world)
    targets: list[dict[str, object]] = [
        {},
        {"targetCluster": {"clusterNames": chance.sample(world.names, 2)}},
        {"targetCluster": {"labelSelector": {"matchLabels": {"zone-class": "edge"}}}},
    ]
    rules = [
        {**chance.choice(targets), "overriders": overriders(world)} for _ in range(chance.randrange(1, 3))
    ]
    selectors = chance.choice(
        [
            [],
            [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            [{"apiVersion": "apps/v1", "kind": "Deployment", "name": chance.choice(world.scope.workloads)}],
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "labelSelector": {"matchLabels": {"tier": chance.choice("ab")}},
                }
            ],
        ]
    )
    spec = {"resourceSelectors": selectors, "overrideRules": rules}
    written = manifest(POLICIES, kind, name, namespace, spec=spec)
    key = keys.object_key(kind, namespace, name)
    await world.submit(inputs.configuration(written), key, 0)
    return f"{kind} {name} {spec}"


async def delete_override(world: World) -> str:
    kind, namespace, name = _override(world)
    ref = WorkloadRef(api_version="policy.karmada.io/v1alpha1", kind=kind, name=name, namespace=namespace)
    await world.submit(policies.ConfigurationDeleted(object=ref), keys.object_key(kind, namespace, name), 0)
    return f"{kind} {name} deleted"
