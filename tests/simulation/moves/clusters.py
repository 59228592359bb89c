"""Moves with clusters: taints, labels, joining and leaving, reported health and conditions."""

from engine.simulation import specs as member_specs
from events import clusters, keys
from tests.builders import inputs
from tests.builders.manifests import POLICIES, manifest
from tests.simulation.world import World

TAINTS = ("maintenance", "gpu", "flaky")
_EFFECTS = ("NoSchedule", "NoExecute", "NoExecute", "PreferNoSchedule")


async def taint(world: World) -> str:
    chance = world.chance
    name = chance.choice(world.names)
    mark = clusters.Taint(key=chance.choice(TAINTS), effect=chance.choice(_EFFECTS))
    await world.submit(clusters.ClusterTainted(name=name, taint=mark), name, 0)
    return f"taint {name} {mark.key}:{mark.effect}"


async def untaint(world: World) -> str:
    name, key = world.chance.choice(world.names), world.chance.choice(TAINTS)
    await world.submit(clusters.ClusterUntainted(name=name, key=key), name, 0)
    return f"untaint {name} {key}"


async def label(world: World) -> str:
    name = world.chance.choice(world.names)
    labels = world.chance.choice([{"zone-class": "edge"}, {"zone-class": "core"}, {}])
    await world.submit(clusters.ClusterLabelled(name=name, labels=labels), name, 0)
    return f"label {name} {labels}"


async def leave(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.submit(clusters.ClusterLeft(name=name), name, 0)
    return f"{name} leaves at once"


async def depart(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.submit(clusters.ClusterLeaving(name=name), name, 0)
    return f"{name} is to leave"


async def join(world: World) -> str:
    spec = world.chance.choice(world.specs)
    await world.submit(member_specs.joined_event(spec), spec.name, 0)
    return f"{spec.name} joins"


async def report_health(world: World) -> str:
    """Report a cluster's health as an external observer, sometimes with a promise to report again."""
    name, ready = world.chance.choice(world.names), world.chance.random() < 0.6
    grace = world.chance.choice([0, 0, 5, 40])
    report = clusters.ClusterHealthChanged(name=name, ready=ready, grace_seconds=grace)
    await world.submit(report, name, 0)
    return f"{name} is {'ready' if ready else 'not ready'}, next in {grace} s"


async def report_conditions(world: World) -> str:
    """Report a cluster's other conditions as a client does, or that there are none."""
    chance = world.chance
    name, status = chance.choice(world.names), chance.choice(["True", "False", "Unknown", ""])
    reported = {"NetworkReady": status} if status else {}
    await world.submit(inputs.conditions_reported(name, **reported), name, 0)
    return f"{name} has the conditions {reported}"


async def apply_taint_policy(world: World) -> str:
    chance = world.chance
    name = chance.choice(["t1", "t2"])
    condition = chance.choice(["Ready", "Ready", "NetworkReady"])
    conditions = [
        {"conditionType": condition, "operator": operator, "statusValues": values}
        for operator, values in (("In", ["False", "Unknown"]), ("In", ["Unknown"]), ("In", ["True"]))
    ]
    spec = {
        "addOnConditions": [chance.choice(conditions[:2])],
        "removeOnConditions": chance.choice([[], conditions[2:]]),
        "taints": [
            {"key": chance.choice(["a", "b"]), "effect": chance.choice(["NoExecute", "NoSchedule"])},
        ],
    }
    written = manifest(POLICIES, "ClusterTaintPolicy", name, spec=spec)
    key = keys.object_key("ClusterTaintPolicy", "", name)
    await world.submit(inputs.configuration(written), key, 0)
    return f"taint policy {name} {spec}"
