"""Moves of other controllers: they suspend scheduling and dispatching, or place a policy's workloads themselves."""

from typing import Final

from events import keys, specs
from events.shapes import WorkloadRef
from tests.simulation.world import World

OTHER: Final = "team"
"""The name of another scheduler."""


async def suspend(world: World) -> str:
    """Suspend or resume the scheduling of a workload, or the dispatching of its works, as queueing controllers do."""
    chance = world.chance
    name = chance.choice(world.scope.workloads)
    ref = WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default")
    scheduling, dispatching = chance.choice(
        [(True, None), (True, None), (False, None), (False, False), (None, True), (None, False), (True, True)]
    )
    written = specs.SuspensionWritten(template=ref, scheduling=scheduling, dispatching=dispatching)
    await world.submit(written, ref.binding_key, keys.shard_of(ref.binding_key))
    return f"suspension of {name}: scheduling {scheduling}, dispatching {dispatching}"


def scheduler(world: World) -> dict[str, object]:
    """Fields of a policy's spec: rarely, another scheduler places its workloads."""
    return {"schedulerName": OTHER} if world.chance.random() < 0.08 else {}
