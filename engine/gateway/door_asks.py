"""What can be asked of one object, and what follows from how it stands: pure, and so asked again when it was late.

Each ask looks at the standing object and gives the events to write, or the answer where there is nothing to write.
"""

from typing import Protocol, cast

import msgspec
from msgspec import Struct

from engine.gateway import door_wishes as wishes
from engine.gateway.door_results import NOT_FOUND, Problem, Result
from engine.gateway.door_views import Held
from events import policies, shapes, specs
from projections.clusters import Cluster

Json = dict[str, object]
Standing = Held | Cluster | None


class Write(Struct, frozen=True, kw_only=True):
    """Events to append, and what that is called when they took effect.

    A report is no write of the object, moves no version, and takes effect as long as the object is there: what a
    cluster says of itself, or what is allowed about a template.
    """

    action: str
    events: tuple[shapes.Event, ...]
    is_report: bool = False


class Ask(Protocol):
    """Something that is asked of one object."""

    @property
    def target(self) -> wishes.Target:
        """The object."""
        ...

    def decide(self, standing: Standing) -> "Write | Result":
        """What follows from how the object stands now."""
        ...


class AllowDeletion(Struct, frozen=True, kw_only=True):
    """What the template left in these clusters until somebody decides may be deleted there."""

    target: wishes.Target
    clusters: tuple[str, ...]

    def decide(self, standing: Standing) -> Write | Result:
        """See ``Ask``."""
        held = cast("Held | None", standing)
        if held is None:
            return not_found(self.target)
        said = tuple(
            specs.DeletionAllowed(template=self.target.reference, cluster=name) for name in self.clusters
        )
        return Write(action="configured", events=said, is_report=True)


def decoded(manifest: bytes) -> Json:
    """The object in bytes that the log took."""
    return msgspec.json.decode(manifest, type=dict[str, object])


def not_found(target: wishes.Target) -> Result:
    """The answer where there is no such object."""
    where = f" in namespace {target.namespace}" if target.namespace else ""
    reason = f'{target.resource} "{target.name}" not found{where}'
    return Result(problem=Problem(verdict=NOT_FOUND, reason=reason))


def done(action: str, standing: Standing) -> Result:
    """The answer where nothing has to be written."""
    return Result(action=action, resource_version=standing.number if standing else 0)


def applied(target: wishes.Target, raw: bytes, expects: int) -> shapes.Event:
    """The event that writes an object; ``expects`` is the home version that it was computed from."""
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
    """The event that deletes an object."""
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
    """The event that writes the status of an object; only templates and configuration have one to be written."""
    fields = msgspec.json.decode(wishes.encode(status), type=shapes.Object)
    if target.route == "configuration":
        return policies.ConfigurationStatusWritten(
            object=target.reference, status=fields, managed_fields=owned, expects=expects
        )
    return specs.TemplateStatusWritten(
        template=target.reference, status=fields, managed_fields=owned, expects=expects
    )
