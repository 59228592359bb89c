"""Size limits for new objects that the engine decides by, because every decision reads the whole object.

Only the write API enforces them. Folds do not, so that objects in existing logs are still read as they were.
"""

from collections.abc import Iterator
from typing import Final

from events import limits
from events.json_values import as_list, as_object
from events.validation import known_kinds as kinds
from events.validation.schema import Fault, join

_GROUPS: Final = frozenset({kinds.POLICY_GROUP, kinds.APPS_GROUP, kinds.CLUSTER_GROUP, kinds.CONFIG_GROUP})
_SPLIT: Final = "write several objects, each with a part of it"


def faults(value: dict[str, object]) -> Iterator[Fault]:
    """Yield the first list in an object's spec that is too long, or else a fault if the whole spec is too large."""
    if value.get("apiVersion") not in _GROUPS:
        return
    most = limits.WORKLOADS_MAX if value.get("kind") == "WorkloadRebalancer" else limits.RULES_MAX
    count = 0
    waiting: list[tuple[str, object]] = [("spec", value.get("spec"))]
    while waiting:
        path, held = waiting.pop()
        fields, items = as_object(held), as_list(held)
        count += len(fields or items or ())
        if items is not None:
            allowed = limits.NAMES_MAX if all(isinstance(item, str) for item in items) else most
            if len(items) > allowed:
                yield Fault(path, f"has {len(items)} entries, more than {allowed}", _SPLIT)
                return
            waiting += ((f"{path}[{index}]", item) for index, item in enumerate(items))
        elif fields is not None:
            waiting += ((join(path, name), item) for name, item in fields.items())
    if count > limits.SPEC_VALUES_MAX:
        yield Fault("spec", f"has {count} fields and entries, more than {limits.SPEC_VALUES_MAX}", _SPLIT)
