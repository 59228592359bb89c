"""What can be asked of one object, and what follows from how it stands: pure, and so asked again when it was late.

Each ask looks at the standing object and gives the events to write, or the answer where there is nothing to write.
"""

from typing import Final, Protocol, cast

import msgspec
from msgspec import Struct, structs

from engine.gateway import door_admission as admission
from engine.gateway import door_merging as merging
from engine.gateway import door_wishes as wishes
from engine.gateway.door_results import LATE, NOT_FOUND, REFUSED, Problem, Result
from engine.gateway.door_views import Held
from engine.kube import karmada_defaults
from engine.kube.default_tolerations import TolerationSeconds
from events import policies, shapes, specs, times
from events.forms_schema import Fault, as_object
from projections.clusters import Cluster

Json = dict[str, object]
Standing = Held | Cluster | None

_REPLICAS: Final = {
    ("apps/v1", "Deployment"): "spec.replicas",
    ("apps/v1", "StatefulSet"): "spec.replicas",
    ("apps/v1", "ReplicaSet"): "spec.replicas",
    ("batch/v1", "Job"): "spec.parallelism",
}


class Write(Struct, frozen=True, kw_only=True):
    """Events to append, and what that is called when they took effect.

    A report is no write of the object, moves no version, and takes effect as long as the object is there: what a
    cluster says of itself, or what is allowed about a template.
    """

    action: str
    events: tuple[shapes.Event, ...]
    warnings: tuple[str, ...] = ()
    is_report: bool = False


class Ask(Protocol):
    """Something that is asked of one object."""

    @property
    def target(self) -> wishes.Target:
        """The object."""
        ...

    def decide(self, standing: Standing) -> "Write | Result | wishes.Unfit":
        """What follows from how the object stands now."""
        ...


class Apply(Struct, frozen=True, kw_only=True):
    """An object is wanted as a document says; ``tolerated`` is what policies get that say nothing."""

    wish: wishes.Wish
    tolerated: TolerationSeconds = TolerationSeconds()

    @property
    def target(self) -> wishes.Target:
        """See ``Ask``."""
        return self.wish.target

    def decide(self, standing: Standing) -> Write | Result | wishes.Unfit:
        """See ``Ask``."""
        held = cast("Held | None", standing)
        wish = self.wish
        if wish.seen and (held is None or held.number > wish.seen):
            return late(wish.target, f"resourceVersion {wish.seen} is not the newest")
        live = None if held is None else decoded(held.manifest)
        merged = karmada_defaults.with_defaults(merging.applied(wish.value, live), tolerated=self.tolerated)
        found = _written(wish.target, merged, held, "configured" if held else "created", wish.warnings)
        return wishes.unfit(wish.source, found, wish.target) if isinstance(found, list) else found


class Patch(Struct, frozen=True, kw_only=True):
    """A merge patch; ``action`` is what it is called, ``seen`` the resourceVersion it was made from, or 0."""

    target: wishes.Target
    patch: Json
    action: str = "patched"
    seen: int = 0
    tolerated: TolerationSeconds = TolerationSeconds()

    def decide(self, standing: Standing) -> Write | Result:
        """See ``Ask``."""
        held = cast("Held | None", standing)
        if held is None:
            return not_found(self.target)
        if self.seen and held.number > self.seen:
            return late(self.target, f"resourceVersion {self.seen} is not the newest")
        patched = admission.clean(merging.patched(decoded(held.manifest), self.patch))
        filled = karmada_defaults.with_defaults(patched, tolerated=self.tolerated)
        found = _written(self.target, filled, held, self.action, ())
        return refused(self.target, found) if isinstance(found, list) else found


class Scale(Struct, frozen=True, kw_only=True):
    """Another number of replicas; ``paths`` are those of custom kinds, by apiVersion and kind."""

    target: wishes.Target
    replicas: int
    paths: dict[tuple[str, str], str]

    def decide(self, standing: Standing) -> Write | Result:
        """See ``Ask``."""
        kind = (self.target.api_version, self.target.kind)
        path = _REPLICAS.get(kind) or self.paths.get(kind)
        if path is None:
            remedy = "declare a ReplicaInterpreter for it" if "." in kind[0] else ""
            return refused(self.target, [Fault("kind", f"a {kind[1]} has no replicas", remedy)])
        patch: Json = {}
        at = patch
        *steps, last = path.removeprefix(".").split(".")
        for step in steps:
            at = cast("Json", at.setdefault(step, {}))
        at[last] = self.replicas
        return Patch(target=self.target, patch=patch, action="scaled").decide(standing)


class Label(Struct, frozen=True, kw_only=True):
    """Labels to set, or to take away (None); one that is there is only changed with ``overwrite``."""

    target: wishes.Target
    labels: dict[str, str | None]
    overwrite: bool = False

    def decide(self, standing: Standing) -> Write | Result:
        """See ``Ask``."""
        held = cast("Held | None", standing)
        if held is None:
            return not_found(self.target)
        metadata = as_object(decoded(held.manifest).get("metadata")) or {}
        if faults := label_faults(
            as_object(metadata.get("labels")) or {}, self.labels, overwrite=self.overwrite
        ):
            return refused(self.target, faults)
        patch: Json = {"metadata": {"labels": dict(self.labels)}}
        return Patch(target=self.target, patch=patch, action="labeled").decide(standing)


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


class Delete(Struct, frozen=True, kw_only=True):
    """The object is not wanted any more."""

    target: wishes.Target

    def decide(self, standing: Standing) -> Write | Result:
        """See ``Ask``."""
        held = cast("Held | None", standing)
        if held is None:
            return not_found(self.target)
        return Write(action="deleted", events=(deletion(self.target, held.head.version),))


def decoded(manifest: bytes) -> Json:
    """The object in bytes that the log took."""
    return msgspec.json.decode(manifest, type=dict[str, object])


def label_faults(present: Json, changes: dict[str, str | None], *, overwrite: bool) -> list[Fault]:
    """Labels that would be changed without being asked to."""
    return [
        Fault(f"metadata.labels.{name}", f"is {present[name]!r} already", "say --overwrite to change it")
        for name, value in changes.items()
        if not overwrite and value is not None and name in present and present[name] != value
    ]


def late(target: wishes.Target, reason: str) -> Result:
    """The answer when somebody else wrote meanwhile."""
    return contested(target, "metadata.resourceVersion", reason, "read it again, then repeat")


def contested(target: wishes.Target, field: str, reason: str, remedy: str) -> Result:
    """The answer when how things stand now is in the way."""
    return _answer(target, (Problem(verdict=LATE, field=field, reason=reason, remedy=remedy),))


def not_found(target: wishes.Target) -> Result:
    """The answer when there is no such object."""
    reason = f'{target.resource} "{target.name}" not found'
    if target.namespace:
        reason += f" in namespace {target.namespace}"
    return _answer(target, (Problem(verdict=NOT_FOUND, reason=reason),))


def refused(target: wishes.Target, faults: list[Fault]) -> Result:
    """The answer when what is asked can't be done."""
    problems = tuple(
        Problem(verdict=REFUSED, field=fault.field, reason=fault.reason, remedy=fault.remedy)
        for fault in faults
    )
    return _answer(target, problems)


def done(target: wishes.Target, action: str, held: Held | None, warnings: tuple[str, ...] = ()) -> Result:
    """The answer when it is as it was asked to be."""
    found = named(target, action, held.number if held else 0, warnings)
    return found if held is None else structs.replace(found, object=msgspec.Raw(_shown(held)))


def named(target: wishes.Target, action: str, version: int, warnings: tuple[str, ...] = ()) -> Result:
    """The same without the object, for those who look at it themselves."""
    return Result(
        action=action,
        resource=target.resource,
        namespace=target.namespace,
        name=target.name,
        resource_version=version,
        warnings=warnings,
    )


def _answer(target: wishes.Target, problems: tuple[Problem, ...]) -> Result:
    return Result(resource=target.resource, namespace=target.namespace, name=target.name, problems=problems)


def _written(
    target: wishes.Target, value: Json, held: Held | None, action: str, warnings: tuple[str, ...]
) -> Write | Result | list[Fault]:
    """The write that makes the object so; the faults, if it may not be so."""
    if held is not None and (clash := _clash(target, held)):
        return [clash]
    try:
        raw = wishes.encode(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        return [Fault("manifest", f"can't be written as JSON: {error}")]
    if faults := wishes.faults_of(target, raw):
        return faults
    if held is not None and raw == held.manifest:
        return done(target, "unchanged", held, warnings)
    event = applied(target, raw, held.head.version if held else 0)
    return Write(action=action, events=(event,), warnings=warnings)


def _clash(target: wishes.Target, held: Held) -> Fault | None:
    """Two objects can share the name of their binding; the second one can't be written."""
    standing = decoded(held.manifest)
    name = (as_object(standing.get("metadata")) or {}).get("name")
    if (held.head.api_version, standing.get("kind"), name) == (target.api_version, target.kind, target.name):
        return None
    reason = f"{held.head.api_version} {standing.get('kind')} {name} has the same binding name"
    return Fault("metadata.name", reason, "delete that one first, or take another name")


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


def _shown(held: Held) -> bytes:
    """The object with what the server knows of it."""
    value = decoded(held.manifest)
    metadata = {
        **(as_object(value.get("metadata")) or {}),
        "uid": held.head.uid,
        "resourceVersion": str(held.number),
        "generation": held.head.generation,
        "creationTimestamp": times.to_seconds_text(held.head.created_ms),
    }
    return wishes.encode({**value, "metadata": metadata})
