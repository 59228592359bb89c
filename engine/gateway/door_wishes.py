"""From a document to a wish: an object of a known route, cleaned and named, or the problems with it.

Everything that can be said of one document without knowing what stands already.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from engine.gateway import door_admission as admission
from engine.gateway.door_results import REFUSED, Problem
from engine.kube import karmada_defaults, versions
from engine.objects import manifests
from events import forms, keys, objects, shapes, topics
from events import forms_kinds as kinds
from events.forms_schema import Fault, as_object

Json = dict[str, object]
Validation = Literal["strict", "warn", "ignore"]

_TOPICS: Final[dict[kinds.Route, str]] = {
    "template": topics.SPECS,
    "rebalancer": topics.SPECS,
    "policy": topics.POLICIES,
    "namespace": topics.POLICIES,
    "interpreter": topics.POLICIES,
    "configuration": topics.POLICIES,
    "cluster": topics.CLUSTERS,
}
_VERSION_CHARS_MAX: Final = 19
encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Target(Struct, frozen=True, kw_only=True):
    """One object by name: where it stands in the log, and what kubectl calls it."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def route(self) -> kinds.Route:
        """What the engine does with the kind."""
        return kinds.route_of(self.api_version, self.kind)

    @property
    def topic(self) -> str:
        """The topic that carries the object."""
        return _TOPICS[self.route]

    @property
    def key(self) -> str:
        """The key of the object in its topic."""
        match self.route:
            case "template":
                return keys.binding_key(self.kind, self.namespace, self.name)
            case "rebalancer":
                return keys.rebalancer_key(self.name)
            case "cluster":
                return self.name
            case _:
                return keys.object_key(self.kind, self.namespace, self.name)

    @property
    def reference(self) -> shapes.WorkloadRef:
        """Its name, as events have it."""
        return shapes.WorkloadRef(
            api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace
        )

    @property
    def resource(self) -> str:
        """The kind as kubectl prints it: ``deployment.apps``."""
        group, slash, _version = self.api_version.partition("/")
        return f"{self.kind.lower()}.{group}" if slash else self.kind.lower()


class Wish(Struct, frozen=True, kw_only=True):
    """An object that somebody wants; ``value`` is what was sent, cleaned.

    ``seen`` is the resourceVersion that the sender had before them, 0 where they named none.
    """

    target: Target
    value: Json
    source: manifests.Document
    warnings: tuple[str, ...] = ()
    seen: int = 0


class Unfit(Struct, frozen=True, kw_only=True):
    """A document that can't be taken; ``target`` as far as it could be read."""

    problems: tuple[Problem, ...]
    content: str
    target: Target | None = None


def read(source: manifests.Document, *, namespace: str, validation: Validation) -> Wish | Unfit:
    """The wish in a document; an object without a namespace gets ``namespace`` where its kind has one."""
    try:
        value = versions.kept_document(source.value)
    except versions.ConversionError as error:
        field, _, reason = str(error).partition(": ")
        return unfit(source, [Fault(field, reason)])
    api_version, kind = value.get("apiVersion"), value.get("kind")
    metadata = as_object(value.get("metadata", {}))
    for field, found in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(found, str) or not found:
            return unfit(source, [Fault(field, "required", "write both apiVersion and kind")])
    if metadata is None:
        return unfit(source, [Fault("metadata", "is not an object", "write metadata with a name")])
    name, placed = metadata.get("name"), metadata.get("namespace") or ""
    for field, found in (("metadata.name", name), ("metadata.namespace", placed)):
        if not isinstance(found, str):
            return unfit(source, [Fault(field, "is not text" if found is not None else "required")])
    notes: list[str] = []
    cleaned = admission.clean(value)
    if not kinds.is_namespaced(str(api_version), str(kind)):
        if placed:
            notes.append(f"a {kind} has no namespace; {placed!r} was left out")
        placed = ""
    elif not placed:
        placed = namespace
    target = Target(api_version=str(api_version), kind=str(kind), namespace=str(placed), name=str(name))
    if reason := kinds.refused(target.api_version, target.kind):
        return unfit(source, [Fault("kind", reason)], target)
    cleaned["metadata"] = _metadata(metadata=as_object(cleaned["metadata"]) or {}, namespace=target.namespace)
    cleaned = forms.canonical_object(cleaned, notes, prune=validation != "strict")
    if unknown := forms.unknown_fields(cleaned):
        remedy = "leave it out, or apply with --validate=warn"
        wrong = [Fault(field, "is a field that nobody knows", remedy) for field in unknown]
        return unfit(source, [*wrong, *_other_faults(target, cleaned)], target)
    return Wish(
        target=target,
        value=cleaned,
        source=source,
        warnings=() if validation == "ignore" else tuple(notes),
        seen=_seen(metadata.get("resourceVersion")),
    )


def faults_of(target: Target, raw: bytes) -> list[Fault]:
    """All that is wrong with an object as it would be written."""
    try:
        manifest = objects.read(msgspec.Raw(raw))
    except objects.Refusal as refusal:
        return [Fault(refusal.field, refusal.reason)]
    found = list(forms.examine(manifest, msgspec.Raw(raw)))
    head = manifest.metadata
    named = (manifest.api_version, manifest.kind, head.namespace, head.name)
    if not found and named != (target.api_version, target.kind, target.namespace, target.name):
        reason = "apiVersion, kind, namespace and name can't be changed"
        found.append(Fault("metadata", reason, "delete the object, write another"))
    return found


def _other_faults(target: Target, cleaned: Json) -> list[Fault]:
    """What else is wrong with an object that has unknown fields, so that one try tells all."""
    try:
        return faults_of(target, encode(karmada_defaults.with_defaults(cleaned)))
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return []  # it can't even be written; that is told once the rest is right


def unfit(source: manifests.Document, faults: list[Fault], target: Target | None = None) -> Unfit:
    """The answer to a document with faults, in the order of their lines."""
    problems = [
        Problem(
            verdict=REFUSED,
            reason=fault.reason,
            field=source.prefix + fault.field,
            remedy=fault.remedy,
            file=source.file,
            document=source.index,
            line=manifests.line_of(source, fault.field),
        )
        for fault in faults
    ]
    in_order = tuple(sorted(problems, key=lambda problem: problem.line))
    return Unfit(problems=in_order, content=source.text, target=target)


def unreadable(fault: manifests.Fault) -> Unfit:
    """The answer to a document that is none."""
    problem = Problem(
        verdict=REFUSED,
        reason=fault.reason,
        field=fault.field,
        remedy=fault.remedy,
        file=fault.file,
        document=fault.index,
        line=fault.line,
    )
    return Unfit(problems=(problem,), content=fault.text)


def _metadata(metadata: Json, namespace: str) -> Json:
    kept = {name: item for name, item in metadata.items() if name != "namespace"}
    return {**kept, "namespace": namespace} if namespace else kept


def _seen(version: object) -> int:
    text = str(version) if isinstance(version, str | int) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _VERSION_CHARS_MAX else 0
