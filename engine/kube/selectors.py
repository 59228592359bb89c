"""Field selectors as queries carry them: ``fieldSelector=metadata.name=x,status.phase!=Running``."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.kube.label_selectors import TEXT_CHARS_MAX, SelectorError
from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_object

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
"""Fields by which a kind can be chosen, beside name and namespace."""

_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "source": ("source.component", "reportingComponent"),
    "reportingComponent": ("reportingComponent", "source.component"),
    "status.successful": ("status.succeeded",),
}
"""Where a field stands whose name in selectors is another."""


class Term(Struct, frozen=True, kw_only=True):
    """One condition on a field."""

    field: str
    value: str
    equal: bool = True


class FieldSelector(Struct, frozen=True, kw_only=True):
    """Conditions that must all hold; none match everything."""

    terms: tuple[Term, ...] = ()

    def matches(self, value: Json) -> bool:
        """Whether an object fulfils all conditions; an absent field is empty."""
        return all((_text(value, term.field) == term.value) == term.equal for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The one value that a field may have, where there is one."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)


def fields(text: str, resource: Resource) -> FieldSelector:
    """The field selector that a text means for a kind; raises SelectorError."""
    if len(text) > TEXT_CHARS_MAX:
        raise SelectorError(f"the field selector is longer than {TEXT_CHARS_MAX} characters")
    further = _FIELDS.get((resource.group, resource.plural), ())
    known = (*_EVERY_KIND, *further)
    found: list[Term] = []
    for part in _split(text):
        field, sign, value = _operator(part)
        if not sign:
            raise SelectorError(f"invalid selector: '{text[:200]}'; can't understand '{part[:200]}'")
        if field not in known:
            raise _unknown(field, is_plain=resource.is_kubernetes_own and not further)
        found.append(Term(field=field, value=_unescaped(value), equal=sign != "!="))
    return FieldSelector(terms=tuple(found))


def _unknown(field: str, *, is_plain: bool) -> SelectorError:
    """A field that nothing is chosen by; ``is_plain`` where the kind has none of its own."""
    if not is_plain:
        return SelectorError(f"field label not supported: {field}")
    choices = ", ".join(f'"{name}"' for name in _EVERY_KIND)
    return SelectorError(f'"{field}" is not a known field selector: only {choices}')


def _split(text: str) -> Iterator[str]:
    """The terms between commas that have no backslash before them."""
    for part in re.split(r"(?<!\\),", text):
        if part.strip():
            yield part.strip()


def _operator(part: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"([^=!\\]*)(==|!=|=)(.*)", part, re.DOTALL)
    return (found[1].strip(), found[2], found[3]) if found else ("", "", "")


def _unescaped(value: str) -> str:
    if re.search(r"\\([^\\,=]|\Z)", value.replace("\\\\", "")) or re.search(r"(?<!\\)=", value):
        raise SelectorError(
            f"invalid field selector: the value {value[:200]!r} is not escaped as it should be"
        )
    return re.sub(r"\\(.)", r"\1", value)


def _text(value: Json, field: str) -> str:
    for path in _ELSEWHERE.get(field, (field,)):
        found: object = value
        for name in path.split("."):
            found = (as_object(found) or {}).get(name)
        if found is not None and not isinstance(found, dict | list):
            return str(found).lower() if isinstance(found, bool) else str(found)
    return ""
