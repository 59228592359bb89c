"""The status values and the health of an object that members report, as the work of the object requests them."""

import msgspec

from engine.kubeapi.values import selectors
from events import json_paths, limits, shapes, status_values
from events.json_values import DECODING_ERRORS, Json, as_count, object_at


def values(status: Json, reading: shapes.Reading | None) -> dict[str, str]:
    """Return the requested status values by path; absent ones are left out, long ones truncated."""
    if reading is None:
        return {}
    result = {path: json_paths.text(status, path) for path in reading.values}
    return {path: text[: limits.STATUS_VALUE_CHARS_MAX] for path, text in result.items() if text is not None}


def whole(api_version: str, kind: str, status: Json, reading: shapes.Reading | None) -> str:
    """Return the whole status as JSON; empty if it is too long, or if members do not report it for this kind."""
    is_reported = (
        status_values.is_whole(api_version, kind) if reading is None or not reading.values else reading.whole
    )
    if not status or not is_reported:
        return ""
    try:
        text = msgspec.json.encode(status, order="deterministic").decode()
    except DECODING_ERRORS:
        return ""
    return text if len(text) <= limits.STATUS_CHARS_MAX else ""


def is_healthy(value: Json, reading: shapes.Reading | None, *, otherwise: bool) -> bool:
    """Return the health of an object by the rules of its kind; ``otherwise`` if there are none."""
    alternatives = _alternatives(reading)
    if not alternatives:
        return otherwise
    status = object_at(value, "status")
    return bool(status) and any(all(_is_met(rule, value, status) for rule in rules) for rules in alternatives)


def has_judged_values(status: Json, reading: shapes.Reading | None) -> bool:
    """Return whether a status has any of the values that the health rules of its kind read."""
    rules = (rule for alternative in _alternatives(reading) for rule in alternative)
    return any(json_paths.values_at(status, rule.path) for rule in rules)


def _alternatives(reading: shapes.Reading | None) -> tuple[tuple[shapes.HealthRule, ...], ...]:
    if reading is None:
        return ()
    return ((reading.health,),) if reading.health is not None else reading.alternatives


def _is_met(rule: shapes.HealthRule, value: Json, status: Json) -> bool:
    if rule.at_least:
        return _count(status, rule.path) >= _count(value, rule.at_least)
    return selectors.is_met(rule.operator, json_paths.text(status, rule.path), rule.values)


def _count(value: Json, path: str) -> int:
    return as_count(next(iter(json_paths.values_at(value, path)), None))
