"""Rules for the conditions of label and field selectors."""

from collections.abc import Iterator
from typing import Final

from events.json_values import as_list, as_object
from events.validation import names
from events.validation.schema import Fault, join

_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})


def label_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield the faults in the keys and conditions of a label selector; values of the wrong type are ignored here."""
    selector = as_object(value) or {}
    for name in as_object(selector.get("matchLabels")) or {}:
        if not names.is_label_name(name):
            yield Fault(f"{path}.matchLabels.{name[:80]}", "is not a label's name")
    for place, item in enumerate(as_list(selector.get("matchExpressions")) or []):
        key = (as_object(item) or {}).get("key")
        if isinstance(key, str) and not names.is_label_name(key):
            yield Fault(f"{path}.matchExpressions[{place}].key", f"{key[:80]!r} is not a label's name")
    yield from condition_rules(selector, path)


def condition_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield faults where an operator needs values and has none, or must have none and has some."""
    expressions = (as_object(value) or {}).get("matchExpressions")
    for place, item in enumerate(as_list(expressions) or []):
        condition = as_object(item) or {}
        operator = str(condition.get("operator"))
        values = as_list(condition.get("values")) or []
        field = join(path, f"matchExpressions[{place}].values")
        if operator in _WITH_VALUES and not values:
            yield Fault(field, f"is empty with the operator {operator}", "give at least one value")
        if operator in _WITHOUT_VALUES and values:
            yield Fault(field, f"must be empty with the operator {operator}", "leave it out")
