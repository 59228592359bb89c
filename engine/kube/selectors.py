"""Selectors as queries carry them: ``labelSelector=app=web,tier in (gold,silver)``, ``fieldSelector=metadata.name=x``.

What a label selector matches is said by ``engine.objects.selectors``; here are its texts, and fields.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_object
from engine.objects.selectors import LabelSelector, Requirement
from events import forms_names as names

TEXT_CHARS_MAX: Final = 16_384
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!,()]|[^\s=!,()]+)")
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


class SelectorError(ValueError):
    """A text that is no selector; a bad request, in words."""


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


def labels(text: str) -> LabelSelector:
    """The label selector that a text means, everything where it is empty; raises SelectorError."""
    tokens = _Tokens(text)
    found: list[Requirement] = []
    while not tokens.done:
        found.append(_requirement(tokens))
        if not tokens.done:
            tokens.take(",")
            if tokens.done:
                raise SelectorError(f"unable to parse requirement: {text[:200]!r} ends with a comma")
    return LabelSelector(match_expressions=tuple(found))


def fields(text: str, resource: Resource) -> FieldSelector:
    """The field selector that a text means for a kind; raises SelectorError."""
    if len(text) > TEXT_CHARS_MAX:
        raise SelectorError(f"the field selector is longer than {TEXT_CHARS_MAX} characters")
    known = (*_EVERY_KIND, *_FIELDS.get((resource.group, resource.plural), ()))
    found: list[Term] = []
    for part in _split(text):
        field, sign, value = _operator(part)
        if not sign:
            raise SelectorError(f"invalid selector: '{text[:200]}'; can't understand '{part[:200]}'")
        if field not in known:
            raise SelectorError(f"field label not supported: {field}")
        found.append(Term(field=field, value=_unescaped(value), equal=sign != "!="))
    return FieldSelector(terms=tuple(found))


class _Tokens:
    """The tokens of a label selector, one after another."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_CHARS_MAX:
            raise SelectorError(f"the label selector is longer than {TEXT_CHARS_MAX} characters")
        self._text = text
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._tokens)

    def peek(self) -> str:
        return "" if self.done else self._tokens[self._at]

    def next(self) -> str:
        token = self.peek()
        self._at += not self.done
        return token

    def take(self, wanted: str) -> None:
        found = self.next()
        if found != wanted:
            raise self.error(f"found '{found[:80]}', expected: '{wanted}'")

    def error(self, why: str) -> SelectorError:
        return SelectorError(f"unable to parse requirement: {why} in {self._text[:200]!r}")


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.peek() == "!"
    if absent:
        tokens.next()
    key = tokens.next()
    if not names.is_label_name(key):
        raise tokens.error(f"{key[:80]!r} is no label's name")
    operator = "" if absent else tokens.peek()
    match operator:
        case "=" | "==" | "!=":
            tokens.next()
            value = "" if tokens.peek() in {"", ","} else tokens.next()
            values = (_value(value, tokens),)
            return Requirement(key=key, operator="NotIn" if operator == "!=" else "In", values=values)
        case "in" | "notin":
            tokens.next()
            values = tuple(_set(tokens))
            return Requirement(key=key, operator="In" if operator == "in" else "NotIn", values=values)
        case "" | ",":
            return Requirement(key=key, operator="DoesNotExist" if absent else "Exists")
        case _:
            raise tokens.error(f"found '{operator[:80]}', expected: in, notin, =, ==, !=")


def _set(tokens: _Tokens) -> Iterator[str]:
    tokens.take("(")
    while True:
        word = "" if tokens.peek() in {",", ")"} else tokens.next()
        yield _value(word, tokens)
        if tokens.peek() == ")":
            tokens.next()
            return
        tokens.take(",")


def _value(text: str, tokens: _Tokens) -> str:
    if not names.is_label_value(text):
        raise tokens.error(f"{text[:80]!r} is no label's value")
    return text


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
