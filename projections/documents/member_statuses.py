"""Statuses that members report, as the status of a binding and of a Work shows them."""

from typing import cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from engine.domain import reported_statuses
from events import decisions, json_paths, shapes, status_values, vocabulary
from events.json_values import Json
from projections.bindings import Binding, Status
from projections.documents import kind_statuses
from projections.documents.objects import put


class _Generations(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    generation: int = 0
    observed_generation: int = 0
    resource_template_generation: int = 0


class AggregatedItem(Struct, frozen=True, gc=False, rename="camel"):
    """The report of one member."""

    applied: bool
    cluster_name: str
    health: str
    applied_message: str | UnsetType = UNSET
    status: Json | UnsetType = UNSET


def aggregated(status: Status, binding: Binding) -> list[AggregatedItem]:
    """Return ``aggregatedStatus``: the report of each member."""
    has_replicas = binding.replicas is not None
    return [
        AggregatedItem(
            member.applied,
            member.cluster,
            member.health,
            applied_message=(member.message if member.applied else apply_failure_message(member)) or UNSET,
            status=member_status(member, binding.template, has_replicas=has_replicas)
            if _has_reported(member)
            else UNSET,
        )
        for member in status.members
    ]


def apply_failure_message(member: decisions.MemberStatus) -> str:
    """Return Karmada's message for a Work whose only manifest was not applied; empty if no fault was reported."""
    return f"Failed to apply all manifests (0/1): {member.message}" if member.message else ""


def _has_reported(member: decisions.MemberStatus) -> bool:
    """Whether the cluster has applied any version of the object, even if it could not apply a newer version."""
    return member.applied or bool(member.generation or member.replicas or member.values)


def member_status(
    member: decisions.MemberStatus, ref: shapes.WorkloadRef, *, has_replicas: bool
) -> Json | UnsetType:
    """Return the status that a member reported, else one made from the reported replica counts and values.

    UNSET for a kind without replicas if the member reported neither a status nor values.
    """
    if member.status and (whole := reported_statuses.decoded(member.status)) is not None:
        return whole
    generations = _Generations(member.generation, member.observed_generation, member.template_generation)
    status = cast("Json", msgspec.to_builtins(generations))
    counts = kind_statuses.replica_counts(ref, (member,)) if has_replicas else {}
    if not member.values:
        return status | counts if has_replicas else UNSET
    kind = ref.api_version, ref.kind
    numbers = status_values.COUNTS.get(kind, ())
    for path, text in member.values.items():
        put(status, json_paths.names(path), int(text) if path in numbers and text.isdecimal() else text)
    kind_status = kind_statuses.of_member(ref, member.values)
    if kind_status is not None:
        return {**status, **kind_status}
    return status if kind == vocabulary.JOB else status | counts
