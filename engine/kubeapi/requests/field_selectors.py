"""Field selectors in query strings: ``fieldSelector=metadata.name=x,status.phase!=Running``."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.kubeapi.requests.label_selectors import TEXT_CHARS_MAX, SelectorError
from engine.kubeapi.schema.resources import Resource
from events.kube_objects import KubeObject

_EVERY_KIND: Final = ("metadata.name", "metadata.namespace")
_EVENT: Final = tuple(
    f"involvedObject.{name}"
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "events"): (*_EVENT, "reason", "reportingComponent", "source", "type"),
    ("events.k8s.io", "events"): (
        *(name.replace("involvedObject", "regarding") for name in _EVENT),
        "reason",
        "reportingController",
        "type",
    ),
    ("", "namespaces"): ("status.phase",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}
"""Selectable fields of each kind, in addition to name and namespace."""

_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "source": ("source.component", "reportingComponent"),
    "reportingComponent": ("reportingComponent", "source.component"),
    "status.successful": ("status.succeeded",),
}
"""Paths of selectable fields whose names differ from their path; the first path that has a value is used."""


class Term(Struct, frozen=True, kw_only=True):
    """A condition that a field equals, or does not equal, a value."""

    field: str
    value: str
    equal: bool = True


class FieldSelector(Struct, frozen=True, kw_only=True):
    """A parsed field selector: all terms must hold; without terms it matches everything."""

    terms: tuple[Term, ...] = ()

    def matches(self, value: KubeObject) -> bool:
        """Whether the object satisfies all terms; an absent field counts as the empty text."""
        return all((_text(value, term.field) == term.value) == term.equal for term in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that the selector requires of a field, or None if there is no such term."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)


def fields(text: str, resource: Resource) -> FieldSelector:
    """Parse a field selector for a kind; raises SelectorError, also for fields that the kind does not support."""
    if len(text) > TEXT_CHARS_MAX:
        raise SelectorError(f"the field selector is longer than {TEXT_CHARS_MAX} characters")
    further = _FIELDS.get((resource.group, resource.plural), ())
    known = (*_EVERY_KIND, *further)
    result: list[Term] = []
    for part in filter(None, map(str.strip, re.split(r"(?<!\\),", text))):
        match = re.fullmatch(r"([^=!\\]*)(==|!=|=)(.*)", part, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text[:200]}'; can't understand '{part[:200]}'")
        field = match[1].strip()
        if field not in known:
            raise _unknown(field, is_plain=resource.is_kubernetes_own and not further)
        result.append(Term(field=field, value=_unescaped(match[3]), equal=match[2] != "!="))
    return FieldSelector(terms=tuple(result))


def _unknown(field: str, *, is_plain: bool) -> SelectorError:
    """Return the error for an unknown field; ``is_plain``: only name and namespace of the kind are selectable."""
    if not is_plain:
        return SelectorError(f"field label not supported: {field}")
    choices = ", ".join(f'"{name}"' for name in _EVERY_KIND)
    return SelectorError(f'"{field}" is not a known field selector: only {choices}')


def _unescaped(value: str) -> str:
    if re.search(r"\\([^\\,=]|\Z)", value.replace("\\\\", "")) or re.search(r"(?<!\\)=", value):
        raise SelectorError(
            f"invalid field selector: the value {value[:200]!r} is not escaped as it should be"
        )
    return re.sub(r"\\(.)", r"\1", value)


def _text(value: KubeObject, field: str) -> str:
    for path in _ELSEWHERE.get(field, (field,)):
        selected = value.at(*path.split("."))
        if selected is not None and not isinstance(selected, dict | list):
            return str(selected).lower() if isinstance(selected, bool) else str(selected)
    return ""
