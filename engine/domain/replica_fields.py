"""Fields of a template that a work sets for its cluster, before overrides: replicas, a Job's completions, labels."""

from collections.abc import Mapping
from typing import Final

from events import shapes, vocabulary
from events.json_values import Json, object_at

_REPLICAS: Final = ("spec", "replicas")
_PARALLELISM: Final = ("spec", "parallelism")
_COMPLETIONS: Final = ("spec", "completions")

Path = tuple[str, ...]
"""Field names from the root of an object."""


def declared_path(reading: shapes.Reading | None) -> str:
    """Return the path of the replica count that a kind's interpreter declares; empty for the default path."""
    return reading.replicas if reading else ""


def path_of(api_version: str, kind: str, declared: str = "") -> Path:
    """Return the path of a kind's replica count; ``declared`` is its interpreter's path, or empty."""
    if declared:
        return tuple(declared.removeprefix(".").split("."))
    return _PARALLELISM if (api_version, kind) == vocabulary.JOB else _REPLICAS


def is_default(declared: str) -> bool:
    """Return whether an interpreter's path of the replica count is empty or the default ``spec.replicas``."""
    return not declared or path_of("", "", declared) == _REPLICAS


def with_counts(value: Json, declared: str, replicas: int | None, completions: int | None) -> Json:
    """Return an object with the replicas and completions of a work; None leaves a field as it is.

    ``declared`` is the path of the replicas that the kind's interpreter declares, or empty.
    """
    if replicas is not None:
        path = path_of(str(value.get("apiVersion")), str(value.get("kind")), declared)
        value = with_field(value, path, replicas)
    return value if completions is None else with_field(value, _COMPLETIONS, completions)


def with_labels(value: Json, labels: Mapping[str, str]) -> Json:
    """Return an object with the labels of a work, which take precedence over its own."""
    if not labels:
        return value
    metadata = object_at(value, "metadata")
    return {**value, "metadata": {**metadata, "labels": {**object_at(metadata, "labels"), **labels}}}


def with_field(value: Json, path: Path, new: object) -> Json:
    """Return a copy of an object with another value at a path, created where missing; the original is unchanged."""
    name, *rest = path
    return {**value, name: with_field(object_at(value, name), tuple(rest), new) if rest else new}
