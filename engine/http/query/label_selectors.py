"""Label selectors in kubectl's query syntax: ``app=web,tier in (gold,silver),!old``."""

import re
from typing import Final

from engine.http.errors import RefusalError
from engine.kubeapi.values.selectors import LabelSelector, Requirement

# Commas separate terms, but also the values of a set in parentheses.
_TERMS: Final = re.compile(r",(?![^()]*\))")
_EQUAL: Final = re.compile(r"([^\s=!,()]+)\s*(=|==|!=)\s*([^\s=!,()]*)")
_SET: Final = re.compile(r"([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_THERE: Final = re.compile(r"(!?)\s*([^\s=!,()]+)")


def parse(text: str) -> LabelSelector:
    """Parse a label selector; empty selects everything. Raises RefusalError if a term is invalid."""
    terms = [term.strip() for term in _TERMS.split(text)] if text.strip() else []
    return LabelSelector(match_expressions=tuple(_requirement(term) for term in terms))


def _requirement(term: str) -> Requirement:
    if match := _EQUAL.fullmatch(term):
        key, sign, value = match.groups()
        return Requirement(key=key, operator="NotIn" if sign == "!=" else "In", values=(value,))
    if match := _SET.fullmatch(term):
        key, verb, values = match.groups()
        operator = "In" if verb == "in" else "NotIn"
        return Requirement(
            key=key, operator=operator, values=tuple(part.strip() for part in values.split(","))
        )
    if match := _THERE.fullmatch(term):
        return Requirement(key=match[2], operator="DoesNotExist" if match[1] else "Exists")
    reason = f"{term[:80]!r} is not a label condition"
    raise RefusalError(400, "labelSelector", reason, "write app=web, tier in (gold,silver), or !old")
