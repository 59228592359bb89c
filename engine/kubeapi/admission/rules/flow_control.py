"""Validation of FlowSchemas and PriorityLevelConfigurations, from the published Kubernetes API."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.admission.rules.parts import Part, spec_of
from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from events.kube_objects import KubeObject

_PRECEDENCE_MAX: Final = 10_000
_PERCENT_MAX: Final = 100
_QUEUES_MAX: Final = 10_000_000
_EXEMPT: Final = "exempt"
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_METHODS: Final = ("ByNamespace", "ByUser")


def flow_schema(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = spec_of(value)
    level, method = spec.part("priorityLevelConfiguration"), spec.part("distinguisherMethod")
    yield from _precedence(spec, value.name)
    if spec.has("distinguisherMethod") and method.text("type") not in _METHODS:
        yield causes.unsupported(f"{method.path}.type", {"Type": method.text("type")}, _METHODS)
    yield from level.name("name", "must reference a priority level")
    for rule in spec.parts("rules"):
        yield from _rule(rule)


def _precedence(spec: Part, name: str) -> Iterator[Cause]:
    precedence = spec.number("matchingPrecedence")
    if precedence is None:
        return
    if precedence <= 0:
        yield spec.invalid("matchingPrecedence", "must be a positive value")
    if precedence > _PRECEDENCE_MAX:
        yield spec.invalid("matchingPrecedence", f"must not be greater than {_PRECEDENCE_MAX}")
    if precedence == 1 and name != _EXEMPT:
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield spec.invalid("matchingPrecedence", detail)


def _rule(rule: Part) -> Iterator[Cause]:
    resources, urls = rule.parts("resourceRules"), rule.parts("nonResourceRules")
    yield from rule.required("subjects", "subjects must contain at least one value")
    for subject in rule.parts("subjects"):
        yield from _subject(subject)
    if not resources and not urls:
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield causes.required(rule.path, detail)
    for item in resources:
        yield from item.required("verbs", "verbs must contain at least one value")
        yield from item.required("apiGroups", "resource rules must supply at least one api group")
        yield from item.required("resources", "resource rules must supply at least one resource")
        if item.fields.get("clusterScope") is not True:
            detail = "resource rules that are not cluster scoped must supply at least one namespace"
            yield from item.required("namespaces", detail)
    for item in urls:
        for name in ("verbs", "nonResourceURLs"):
            yield from item.required(name, f"{name} must contain at least one value")


def _subject(subject: Part) -> Iterator[Cause]:
    kind = subject.text("kind")
    field = _SUBJECTS.get(kind)
    if field is None:
        yield causes.unsupported(f"{subject.path}.kind", kind, _SUBJECTS)
        return
    named = subject.part(field)
    if not subject.has(field):
        yield causes.required(named.path, f"{field} is required when subject kind is '{kind}'")
    else:
        yield from named.required("name")
        if field == "serviceAccount":
            yield from named.required("namespace", "must specify namespace for service account")
    for other_kind, other in _SUBJECTS.items():
        if other != field and subject.has(other):
            yield subject.forbidden(other, f"{other} is forbidden when subject kind is not '{other_kind}'")


def priority_level(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = spec_of(value)
    kind = spec.text("type")
    if (value.name == _EXEMPT) != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        yield causes.invalid("spec.type", kind, detail)
    if kind == "Exempt":
        if spec.has("limited"):
            yield spec.forbidden("limited", "must be nil if the type is not Limited")
        yield from _shares(spec.part("exempt"))
    elif kind == "Limited":
        if spec.has("exempt"):
            yield spec.forbidden("exempt", "must be nil if the type is Limited")
        if spec.has("limited"):
            yield from _limited(spec.part("limited"))
        else:
            yield causes.required("spec.limited", "must not be empty when type is Limited")
    else:
        yield causes.unsupported("spec.type", kind, ("Exempt", "Limited"))


def _limited(limited: Part) -> Iterator[Cause]:
    response = limited.part("limitResponse")
    kind = response.text("type")
    if kind == "Reject":
        if response.has("queuing"):
            yield response.forbidden("queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind != "Queue":
        yield causes.unsupported(f"{response.path}.type", kind, ("Queue", "Reject"))
    elif response.has("queuing"):
        yield from _queuing(response.part("queuing"))
    else:
        detail = "must not be empty if limited.limitResponse.type is Limited"
        yield causes.required(f"{response.path}.queuing", detail)
    yield from _shares(limited)


def _shares(level: Part) -> Iterator[Cause]:
    if (level.number("nominalConcurrencyShares") or 0) < 0:
        yield level.invalid("nominalConcurrencyShares", "must be a non-negative integer")
    if not 0 <= (level.number("lendablePercent") or 0) <= _PERCENT_MAX:
        yield level.invalid("lendablePercent", "must be between 0 and 100, inclusive")
    if (level.number("borrowingLimitPercent") or 0) < 0:
        yield level.invalid("borrowingLimitPercent", "if specified, must be a non-negative integer")


def _queuing(queuing: Part) -> Iterator[Cause]:
    for name in ("queueLengthLimit", "queues", "handSize"):
        number = queuing.number(name)
        if number is not None and number <= 0:
            yield queuing.invalid(name, "must be positive")
    queues, hand_size = queuing.number("queues"), queuing.number("handSize")
    if queues is not None and queues > _QUEUES_MAX:
        yield queuing.invalid("queues", f"must not be greater than {_QUEUES_MAX}")
    if queues is not None and hand_size is not None and hand_size > queues:
        yield queuing.invalid("handSize", f"should not be greater than queues ({queues})")
