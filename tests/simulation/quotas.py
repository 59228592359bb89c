"""Overall quotas, and workloads that are kept together or apart: moves, and what they promise."""

from collections.abc import Iterable
from typing import Final

from engine.kubeapi.values import quantity
from events import codec, decisions, keys, policies, quota_decisions, topics
from events.records import StoredRecord
from events.shapes import WorkloadRef
from tests.builders import inputs
from tests.builders.manifests import POLICIES
from tests.simulation.moves import edits
from tests.simulation.world import Scope, World

_NAMES: Final = ("q1", "q2")
_KIND: Final = "FederatedResourceQuota"


async def apply_quota(world: World) -> str:
    name, cpu = world.chance.choice(_NAMES), world.chance.choice(["500m", "2", "8", "40"])
    await world.submit(inputs.quota(name, cpu), keys.object_key(_KIND, "default", name), 0)
    return f"quota {name} of {cpu} cores"


async def delete_quota(world: World) -> str:
    name = world.chance.choice(_NAMES)
    ref = WorkloadRef(api_version=POLICIES, kind=_KIND, name=name, namespace="default")
    key = keys.object_key(_KIND, "default", name)
    await world.submit(policies.ConfigurationDeleted(object=ref), key, 0)
    return f"quota {name} deleted"


SCOPE: Final = Scope(is_grouped=True, is_varied=True)
WEIGHTS: Final = {**edits.WEIGHTS, apply_quota: 2, delete_quota: 1}


def check(records: Iterable[StoredRecord]) -> list[str]:
    """Check in a stable world that the last decision on quotas, if there is one, has what the bindings use."""
    requests: dict[str, dict[str, str]] = {}
    clusters: dict[str, dict[str, int]] = {}
    shown: dict[str, dict[str, str]] = {}
    for record in records:
        decoded = codec.decode(record) if record.topic == topics.DECISIONS else None
        match decoded.data if isinstance(decoded, codec.Decoded) else None:
            case decisions.BindingDeclared() as data:
                requests[data.key] = data.requests or {}
            case decisions.BindingWithdrawn(key=key):
                clusters.pop(key, None)
            case decisions.ScheduleDecided() as data:
                clusters[data.key] = {target.name: target.replicas for target in data.clusters}
            case decisions.ScheduleFailed(key=key, emptied=True):
                clusters.pop(key, None)
            case decisions.EvictionStarted(key=key, cluster=name):
                clusters.get(key, {}).pop(name, None)
            case quota_decisions.QuotaDecided(used=used):
                shown = used
            case _:
                pass
    violations: list[str] = []
    for resource in {resource for amounts in shown.values() for resource in amounts}:
        used = sum(
            quantity.nano_units(requests[key].get(resource, "0")) * sum(replicas.values())
            for key, replicas in clusters.items()
        )
        violations += [
            f"quota {name}: {amounts} is shown as used, {used}n of {resource} are"
            for name, amounts in shown.items()
            if quantity.nano_units(amounts.get(resource, "0")) != used
        ]
    return violations
