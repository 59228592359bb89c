"""Validation of cluster events beyond the types of their fields.

Every fold runs it as part of its verdict, because the engine computes with these names, taints and quantities
whichever producer wrote them.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from events import clusters, objects, shapes
from events.validation import kind_schemas, names
from events.validation.schema import Fault, faults

_STATUSES: Final = ("True", "False", "Unknown")
_FORMS: Final = {
    **kind_schemas.form("cluster.karmada.ClusterSpec").known,
    "taint": kind_schemas.form("core.Taint"),
}


def check(data: shapes.Event) -> None:
    """Raise ``objects.Refusal`` for the first fault of a cluster event; other events pass."""
    for fault in examine(data):
        remedy = f"; {fault.remedy}" if fault.remedy else ""
        raise objects.Refusal(fault.field, fault.reason + remedy)


def examine(data: shapes.Event) -> Iterator[Fault]:
    """Yield all faults of a cluster event, each with the path of its field."""
    match data:
        case clusters.ClusterJoined():
            if not names.is_dns_name(data.name):
                yield Fault(
                    "name", f"{data.name[:80]!r} is no DNS name", "use lower case letters, digits, '-', '.'"
                )
            yield from names.label_faults(data.labels, "labels")
            yield from _fields(data)
        case clusters.ClusterLabelled(labels=labels):
            yield from names.label_faults(labels, "labels")
        case clusters.ClusterDescribed() | clusters.ClusterTainted():
            yield from _fields(data)
        case clusters.CapacityReported():
            yield from _quantities(data.allocatable, "allocatable")
            yield from _quantities(data.allocated, "allocated")
            yield from _quantities(data.allocating, "allocating")
            for index, quota in enumerate(data.quotas):
                yield from _quantities(quota.free, f"quotas[{index}].free")
        case clusters.ClusterConditionsReported(conditions=conditions):
            yield from _conditions(conditions)
        case clusters.MemberObjectApplied(manifest=manifest):
            objects.read(manifest)
            objects.spec_digest(manifest)
        case _:
            return


def _fields(data: shapes.Event) -> Iterator[Fault]:
    """Faults in the fields that the event shares with the spec of a Cluster object."""
    # Encode and decode once, because the forms expect JSON lists, not tuples.
    written = msgspec.json.decode(msgspec.json.encode(data), type=dict[str, object])
    for name, form in _FORMS.items():
        if name in written:
            yield from faults(form, written[name], name)


def _conditions(conditions: tuple[clusters.ClusterCondition, ...]) -> Iterator[Fault]:
    types: set[str] = set()
    for index, condition in enumerate(conditions):
        path = f"conditions[{index}]"
        if not condition.type or condition.type in clusters.DERIVED_CONDITIONS or condition.type in types:
            reason = f"{condition.type[:80]!r} is empty, repeated or derived by the engine"
            yield Fault(f"{path}.type", reason, "give each condition a type of its own")
        if condition.status not in _STATUSES:
            yield Fault(f"{path}.status", f"{condition.status[:80]!r} is not True, False or Unknown")
        types.add(condition.type)


def _quantities(amounts: Mapping[str, str], path: str) -> Iterator[Fault]:
    for resource, amount in amounts.items():
        if not names.is_quantity(amount):
            yield Fault(f"{path}.{resource[:80]}", f"{amount[:80]!r} is not {names.QUANTITY.means}")
