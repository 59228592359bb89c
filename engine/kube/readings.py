"""What is read in an object's status because a work asked for it: values by their paths, and whether it is well."""

from engine.kube.schemas import Json
from events import json_paths, limits, shapes


def values(status: Json, reading: shapes.Reading | None) -> dict[str, str]:
    """The texts that a report carries, by path; without those that are not there, cut where they are too long."""
    if reading is None:
        return {}
    found = {path: json_paths.text(status, path) for path in reading.values}
    return {path: text[: limits.STATUS_VALUE_CHARS_MAX] for path, text in found.items() if text is not None}


def is_well(status: Json, reading: shapes.Reading | None, *, otherwise: bool) -> bool:
    """Whether an object is well: as its kind's rule says, ``otherwise`` where there is none."""
    rule = reading.health if reading else None
    return otherwise if rule is None else json_paths.text(status, rule.path) in rule.values
