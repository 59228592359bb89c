"""PriorityClasses that are created, changed and deleted, and references to them."""

from typing import Final

from events import keys
from events.shapes import WorkloadRef
from events.specs import TemplateDeleted
from tests.builders.inputs import applied
from tests.builders.manifests import PRIORITY_CLASS, manifest
from tests.simulation.world import World

CLASSES: Final = {"high": 1_000, "middle": 10, "low": -10}
_API: Final = "scheduling.k8s.io/v1"


async def submit_class(world: World, name: str, **fields: object) -> None:
    key = keys.binding_key("PriorityClass", "", name)
    await world.submit(applied(manifest(*PRIORITY_CLASS, name) | fields), key, keys.shard_of(key))


async def priority_class(world: World) -> str:
    chance = world.chance
    name = chance.choice(sorted(CLASSES))
    fields: dict[str, object] = {"value": chance.choice([CLASSES[name], CLASSES[name] + 5])}
    if chance.random() < 0.2:
        fields["preemptionPolicy"] = "Never"
    if chance.random() < 0.2:
        fields["globalDefault"] = True
    await submit_class(world, name, **fields)
    return f"class {name} {fields}"


async def no_priority_class(world: World) -> str:
    name = world.chance.choice(sorted(CLASSES))
    key = keys.binding_key("PriorityClass", "", name)
    ref = WorkloadRef(api_version=_API, kind="PriorityClass", name=name)
    await world.submit(TemplateDeleted(template=ref), key, keys.shard_of(key))
    return f"class {name} deleted"


def of_policy(world: World) -> dict[str, object]:
    """Return the priority fields of a policy: mostly a class, sometimes that of the pods."""
    by = {"priorityClassName": world.chance.choice(sorted(CLASSES))}
    priority = world.chance.choice(
        [{"priorityClassSource": "KubePriorityClass", **by}] * 3
        + [{"priorityClassSource": "PodPriorityClass"}]
    )
    return {"schedulePriority": priority}


def of_pod(world: World) -> dict[str, object]:
    """Return the priority fields of a pod spec, which also affect scheduling in the member."""
    if world.chance.random() < 0.7:
        return {}
    return {"priorityClassName": world.chance.choice(sorted(CLASSES))}
