"""Rules of ReplicaInterpreter, which declares how the engine reads a custom kind."""

from collections.abc import Iterator
from typing import Final

from events import limits
from events.json_values import as_object, list_at, object_at
from events.validation import known_kinds as kinds
from events.validation import policies
from events.validation.schema import Fault

_LISTS: Final = ("statusFields", "dependencies", "retainedFields")
_NOT_RETAINED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def rules(value: object) -> Iterator[Fault]:
    """Yield the faults that the form of a spec cannot express; values of the wrong type are ignored here."""
    spec = object_at(value)
    yield from _health(as_object(spec.get("health")))
    for name in _LISTS:
        items = list_at(spec, name)
        if len(items) > limits.STATUS_RULES_MAX:
            yield Fault(f"spec.{name}", f"has {len(items)} items, more than {limits.STATUS_RULES_MAX}")
    seen: set[str] = set()
    for index, item in enumerate(list_at(spec, "statusFields")):
        field = f"spec.statusFields[{index}].jsonPath"
        path = str(object_at(item).get("jsonPath", ""))
        yield from policies.path_rules(path, field)
        if path in seen:
            yield Fault(field, f"{path[:80]!r} stands twice")
        seen.add(path)
    for index, item in enumerate(list_at(spec, "dependencies")):
        needed = object_at(item)
        field = f"spec.dependencies[{index}]"
        yield from policies.path_rules(str(needed.get("namesPath", "")), f"{field}.namesPath")
        named = str(needed.get("apiVersion", "")), str(needed.get("kind", ""))
        known = kinds.known(*named)
        if kinds.refused(*named) or (
            known is not None and (known.route != "template" or not known.namespaced)
        ):
            yield Fault(f"{field}.kind", f"objects of the kind {named[1][:63]} don't go along with others")
    for index, item in enumerate(list_at(spec, "retainedFields")):
        first = str(item).removeprefix(".").partition(".")[0]
        if first in _NOT_RETAINED:
            yield Fault(
                f"spec.retainedFields[{index}]", f"{first} is never the member's", "name a field below spec"
            )


def _health(health: dict[str, object] | None) -> Iterator[Fault]:
    if health is None:
        return
    has_path, has_condition = "jsonPath" in health or "values" in health, "condition" in health
    if has_path == has_condition:
        reason = "can't have both, a condition and a jsonPath" if has_path else "says nothing"
        yield Fault("spec.health", reason, "write a condition, or a jsonPath with its values")
    elif has_path:
        for name in ("jsonPath", "values"):
            if name not in health:
                yield Fault(f"spec.health.{name}", "required")
        if "jsonPath" in health:
            yield from policies.path_rules(str(health["jsonPath"]), "spec.health.jsonPath")
