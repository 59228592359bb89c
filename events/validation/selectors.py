"""Rules for the conditions of label and field selectors."""

from collections.abc import Iterator
from typing import Final

from events.json_values import list_at, object_at
from events.validation import names
from events.validation.schema import Fault, join

_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})


def label_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield the faults in the keys and conditions of a label selector; values of the wrong type are ignored here."""
    selector = object_at(value)
    for name in object_at(selector, "matchLabels"):
        if not names.is_label_name(name):
            yield Fault(f"{path}.matchLabels.{name[:80]}", "is not a label's name")
    for index, item in enumerate(list_at(selector, "matchExpressions")):
        key = object_at(item).get("key")
        if isinstance(key, str) and not names.is_label_name(key):
            yield Fault(f"{path}.matchExpressions[{index}].key", f"{key[:80]!r} is not a label's name")
    yield from condition_rules(selector, path)


def condition_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield faults where an operator needs values and has none, or must have none and has some."""
    expressions = object_at(value).get("matchExpressions")
    for index, item in enumerate(list_at(expressions)):
        condition = object_at(item)
        operator = str(condition.get("operator"))
        values = list_at(condition, "values")
        field = join(path, f"matchExpressions[{index}].values")
        if operator in _WITH_VALUES and not values:
            yield Fault(field, f"is empty with the operator {operator}", "give at least one value")
        if operator in _WITHOUT_VALUES and values:
            yield Fault(field, f"must be empty with the operator {operator}", "leave it out")
