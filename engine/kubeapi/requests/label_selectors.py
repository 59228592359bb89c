"""Parser of label selectors in query strings: ``app=web,tier in (gold,silver),!old,size>3``.

Error messages equal those of Kubernetes. ``engine.kubeapi.values.selectors`` matches the requirements; numeric
comparisons exist in query strings only and are matched here.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.kubeapi.errors import causes, messages
from engine.kubeapi.values.selectors import LabelSelector, Operator, Requirement
from events.limits import shortened

TEXT_CHARS_MAX: Final = 16_384
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+)")
_SIGNS: Final = frozenset({"=", "==", "!=", "!", ",", "(", ")", "<", ">"})
_SETS: Final[Mapping[str, str]] = {"in": Operator.IN, "notin": Operator.NOT_IN}
_EQUALITIES: Final[Mapping[str, str]] = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN}
_COMPARISONS: Final = ("<", ">")
_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class SelectorError(ValueError):
    """An invalid label or field selector; the message is that of a 400 response."""


class Comparison(Struct, frozen=True, kw_only=True):
    """A requirement that a label is a number greater (``above``) or less than ``number``."""

    key: str
    above: bool
    number: int

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the label is set to an integer that satisfies the comparison."""
        label = labels.get(self.key, "")
        if not _NUMBER.fullmatch(label):
            return False
        return int(label) > self.number if self.above else int(label) < self.number


class LabelQuery(Struct, frozen=True, kw_only=True):
    """A parsed selector: all conditions must hold; without conditions it matches everything."""

    requirements: LabelSelector
    comparisons: tuple[Comparison, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.requirements.matches(labels) and all(
            comparison.matches(labels) for comparison in self.comparisons
        )


def labels(text: str) -> LabelQuery:
    """Parse a label selector; an empty text matches everything. Raises SelectorError."""
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    comparisons: list[Comparison] = []
    while tokens.peek():
        if tokens.peek() in _SIGNS - {"!"}:
            raise SelectorError(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
        try:
            requirement = _requirement(tokens)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        if isinstance(requirement, Requirement):
            requirements.append(requirement)
        else:
            comparisons.append(requirement)
        _check_separator(tokens)
    return LabelQuery(
        requirements=LabelSelector(match_expressions=tuple(requirements)), comparisons=tuple(comparisons)
    )


class _Tokens:
    """Token stream of a label selector; the empty token marks the end."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_CHARS_MAX:
            raise SelectorError(f"the label selector is longer than {TEXT_CHARS_MAX} characters")
        # Tokenized after the length check, because selectors come from clients.
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self._at += 1
        return token

    def word(self, expected: str) -> str:
        """Return the next token if it is a word, otherwise raise SelectorError naming what was expected."""
        token = self.next()
        if not token or token in _SIGNS:
            raise _unexpected(token, expected)
        return token


def _check_separator(tokens: _Tokens) -> None:
    token = tokens.next()
    if token not in ("", ","):
        raise _unexpected(token, "',' or 'end of string'")
    if token and (not tokens.peek() or tokens.peek() in _SIGNS - {"!"}):
        raise _unexpected(tokens.peek(), "identifier after ','")


def _requirement(tokens: _Tokens) -> Requirement | Comparison:
    is_absent = tokens.peek() == "!"
    if is_absent:
        tokens.next()
    key = tokens.word("identifier")
    for fault in messages.qualified_faults(key):
        raise SelectorError(causes.invalid("<nil>", key, fault).text)
    if is_absent:
        return Requirement(key=key, operator=Operator.DOES_NOT_EXIST)
    if tokens.peek() in ("", ","):
        return Requirement(key=key, operator=Operator.EXISTS)
    operator = tokens.next()
    if operator in _COMPARISONS:
        return _comparison(key, operator, tokens)
    if operator in _SETS:
        return Requirement(key=key, operator=_SETS[operator], values=_checked(key, _set(tokens)))
    if operator in _EQUALITIES:
        values = _checked(key, [_value(tokens)])
        return Requirement(key=key, operator=_EQUALITIES[operator], values=values)
    raise _unexpected(operator, _OPERATORS)


def _comparison(key: str, operator: str, tokens: _Tokens) -> Comparison:
    text = _value(tokens)
    if not _NUMBER.fullmatch(text):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise SelectorError(causes.invalid("values[0]", text, detail).text)
    return Comparison(key=key, above=operator == ">", number=int(text))


def _value(tokens: _Tokens) -> str:
    return "" if tokens.peek() in ("", ",") else tokens.word("identifier")


def _set(tokens: _Tokens) -> list[str]:
    token = tokens.next()
    if token != "(":  # noqa: S105  # a bracket
        raise SelectorError(f"found '{shortened(token)}' expected: '('")
    result: list[str] = []
    while True:
        result.append("" if tokens.peek() in (",", ")") else tokens.word("',', ')' or identifier"))
        token = tokens.next()
        if token == ")":  # noqa: S105  # a bracket
            return sorted(set(result))
        if token != ",":  # noqa: S105  # a comma
            raise _unexpected(token, "',' or ')'")


def _checked(key: str, values: list[str]) -> tuple[str, ...]:
    for index, text in enumerate(values):
        for fault in messages.value_faults(text):
            raise SelectorError(causes.invalid(f"values[{index}][{key}]", text, fault).text)
    return tuple(values)


def _unexpected(token: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{shortened(token)}', expected: {expected}")
