"""The fields of an object that hold its number of replicas, and a Job's completions."""

from typing import Final, cast

from events import shapes, vocabulary

_REPLICAS: Final = ("spec", "replicas")
_PARALLELISM: Final = ("spec", "parallelism")
_COMPLETIONS: Final = ("spec", "completions")

Path = tuple[str, ...]
"""Field names from the root of an object."""


def declared_path(reading: shapes.Reading | None) -> str:
    """Return the path of a kind's replica count if its interpreter declares another than the default; else empty."""
    return reading.replicas if reading else ""


def path_of(api_version: str, kind: str, declared: str = "") -> Path:
    """Return the path of a kind's replica count; ``declared`` is its interpreter's path, or empty."""
    if declared:
        return tuple(declared.removeprefix(".").split("."))
    return _PARALLELISM if (api_version, kind) == vocabulary.JOB else _REPLICAS


def is_default(declared: str) -> bool:
    """Return whether an interpreter's path is the default one."""
    return not declared or path_of("", "", declared) == _REPLICAS


def with_counts(
    value: dict[str, object], path: Path, replicas: int | None, completions: int | None
) -> dict[str, object]:
    """Return an object with the replicas and completions of a work; None leaves a field as it is."""
    if replicas is not None:
        value = with_field(value, path, replicas)
    return value if completions is None else with_field(value, _COMPLETIONS, completions)


def with_field(value: dict[str, object], path: Path, new: object) -> dict[str, object]:
    """Return a copy of an object with another value at a path, created where missing; the original is unchanged."""
    name, *rest = path
    child = value.get(name)
    child_fields = cast("dict[str, object]", child) if isinstance(child, dict) else {}
    return {**value, name: with_field(child_fields, tuple(rest), new) if rest else new}
