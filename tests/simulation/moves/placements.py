"""Placements with spread constraints, static weights, and affinity groups with overflow."""

from tests.builders.manifests import EVEN
from tests.simulation.world import World


def with_random_field(world: World, fields: dict[str, object]) -> dict[str, object]:
    """Return the placement, in half of all cases with one of these fields."""
    chance = world.chance
    if chance.random() < 0.5:
        return fields
    kind = chance.choice(["spread", "weights", "groups", "groups"])
    if kind == "spread":
        return fields | {"spreadConstraints": _spread(world)}
    if kind == "weights":
        weights = {"staticWeightList": _weights(world)}
        return fields | {"replicaScheduling": EVEN | {"weightPreference": weights}}
    fields = {name: value for name, value in fields.items() if name != "clusterAffinity"}
    return fields | {"clusterAffinities": groups(world)}


def _spread(world: World) -> list[dict[str, object]]:
    chance = world.chance
    by_cluster: dict[str, object] = {
        "spreadByField": "cluster",
        "minGroups": chance.randrange(1, 3),
        "maxGroups": chance.randrange(2, 4),
    }
    by_region: dict[str, object] = {
        "spreadByField": "region",
        "minGroups": 1,
        "maxGroups": chance.randrange(1, 3),
    }
    return chance.choice([[by_cluster], [by_cluster], [by_region, by_cluster]])


def _weights(world: World) -> list[dict[str, object]]:
    names = world.chance.sample(world.names, min(3, len(world.names)))
    return [
        {"targetCluster": {"clusterNames": [name]}, "weight": world.chance.randrange(1, 4)} for name in names
    ]


def groups(world: World) -> list[dict[str, object]]:
    """Two or three affinity groups, of which the first may overflow into another cluster."""
    chance = world.chance
    terms: list[dict[str, object]] = [
        {"affinityName": f"group{index}", "clusterNames": chance.sample(world.names, chance.randrange(1, 3))}
        for index in range(chance.randrange(2, 4))
    ]
    if chance.random() < 0.4:
        terms[0]["overflowAffinities"] = [{"clusterNames": chance.sample(world.names, 1)}]
    return terms
