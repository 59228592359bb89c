"""Operations on one object, as pure functions of its state: computed again if another client wrote in between.

Each operation looks at the stored object and returns the events to append, or a result if there is nothing to
write.
"""

from typing import Protocol, cast

import msgspec
from msgspec import Struct

from engine.writing import targets as wishes
from engine.writing.results import NOT_FOUND, Problem, Result
from engine.writing.stored_objects import StoredObject
from events import policies, shapes, specs
from events.json_values import Json
from projections.clusters import Cluster

StoredState = StoredObject | Cluster | None


class Write(Struct, frozen=True, kw_only=True):
    """Events to append, and the name of the action to report once they took effect.

    A report does not write the object itself: it moves no version and takes effect as long as the object
    exists. Examples are a cluster's capacity, or permission to delete a template's workload.
    """

    action: str
    events: tuple[shapes.Event, ...]
    is_report: bool = False


class Operation(Protocol):
    """An operation on one object."""

    @property
    def target(self) -> wishes.Target: ...

    def decide(self, stored: StoredState) -> "Write | Result":
        """Return the events to append, or the result if nothing has to be written.

        Must be pure: it is called again with a newer object if the first write came too late.
        """
        ...


class AllowDeletion(Struct, frozen=True, kw_only=True):
    """Allow the deletion of a template's workload in clusters that keep it until a user decides."""

    target: wishes.Target
    clusters: tuple[str, ...]

    def decide(self, stored: StoredState) -> Write | Result:
        current = cast("StoredObject | None", stored)
        if current is None:
            return not_found(self.target)
        events = tuple(
            specs.DeletionAllowed(template=self.target.reference, cluster=name) for name in self.clusters
        )
        return Write(action="configured", events=events, is_report=True)


def decoded(manifest: bytes) -> Json:
    return msgspec.json.decode(manifest, type=dict[str, object])


def not_found(target: wishes.Target) -> Result:
    """The result for an object that does not exist."""
    where = f" in namespace {target.namespace}" if target.namespace else ""
    reason = f'{target.resource} "{target.name}" not found{where}'
    return Result(problem=Problem(verdict=NOT_FOUND, reason=reason))


def done(action: str, stored: StoredState) -> Result:
    """The result if nothing has to be written."""
    return Result(action=action, resource_version=stored.number if stored else 0)


def applied(target: wishes.Target, raw: bytes, expects: int) -> shapes.Event:
    """The event that writes an object; ``expects`` is the write version that it was computed from (0: new)."""
    manifest = msgspec.Raw(raw)
    match target.route:
        case "template":
            return specs.TemplateApplied(manifest=manifest, expects=expects)
        case "rebalancer":
            return specs.RebalancerApplied(manifest=manifest, expects=expects)
        case "namespace":
            return policies.NamespaceApplied(manifest=manifest, expects=expects)
        case "interpreter":
            return policies.InterpreterApplied(manifest=manifest, expects=expects)
        case "configuration":
            return policies.ConfigurationApplied(manifest=manifest, expects=expects)
        case _:
            return policies.PolicyApplied(manifest=manifest, expects=expects)


def deletion(target: wishes.Target, expects: int) -> shapes.Event:
    match target.route:
        case "template":
            return specs.TemplateDeleted(template=target.reference, expects=expects)
        case "configuration":
            return policies.ConfigurationDeleted(object=target.reference, expects=expects)
        case "rebalancer":
            return specs.RebalancerDeleted(name=target.name, expects=expects)
        case "namespace":
            return policies.NamespaceDeleted(name=target.name, expects=expects)
        case "interpreter":
            return policies.InterpreterDeleted(name=target.name, expects=expects)
        case _:
            policy = shapes.PolicyRef(kind=target.kind, name=target.name, namespace=target.namespace)
            return policies.PolicyDeleted(policy=policy, expects=expects)


def status_written(
    target: wishes.Target, status: Json, owned: tuple[shapes.FieldsOwner, ...], expects: int
) -> shapes.Event:
    """The event that writes an object's status; only templates and configuration have a writable status."""
    fields = msgspec.json.decode(wishes.encode(status), type=shapes.Object)
    if target.route == "configuration":
        return policies.ConfigurationStatusWritten(
            object=target.reference, status=fields, managed_fields=owned, expects=expects
        )
    return specs.TemplateStatusWritten(
        template=target.reference, status=fields, managed_fields=owned, expects=expects
    )
