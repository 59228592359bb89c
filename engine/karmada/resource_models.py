"""Resource models of Clusters: Karmada's defaults and rules.

Grades divide nodes by their amounts of resources. Together they cover all amounts from 0 on, without gaps.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from engine.domain.clusters import DEFAULT_MODELS, UNBOUNDED
from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import quantity
from events.json_values import Json, objects_at

_PATH: Final = "spec.resourceModels"


def with_defaults(spec: Json) -> Json:
    """Return the spec of a Cluster with its grades sorted and covering all amounts from 0 on.

    A Cluster without grades gets the default grades. Malformed grades are returned unchanged.
    """
    models = objects_at(spec, "resourceModels")
    if not spec.get("resourceModels"):
        # Convert structs and tuples to dicts and lists: manifests in the write path are decoded JSON.
        return {**spec, "resourceModels": msgspec.to_builtins(DEFAULT_MODELS)}
    grades = [grade for model in models if type(grade := model.get("grade")) is int]
    if not models or len(grades) < len(models):
        return spec
    ordered = [model for _, model in sorted(zip(grades, models, strict=True), key=lambda pair: pair[0])]
    ordered[0] = _bounded(ordered[0], min="0")
    ordered[-1] = _bounded(ordered[-1], max=UNBOUNDED)
    return {**spec, "resourceModels": ordered}


def _bounded(model: Json, **bound: str) -> Json:
    return {**model, "ranges": [{**item, **bound} for item in objects_at(model, "ranges")]}


def faults(models: Sequence[Json]) -> Iterator[Cause]:
    """Yield an error for each malformed upper bound; if there is none, an error for grades that overlap or leave gaps.

    Other malformed fields are not reported here, because schema validation refuses them.
    """
    ranges = [[_range(item) for item in objects_at(model, "ranges")] for model in models]
    for index, items in enumerate(ranges):
        for position, (_, _, high) in enumerate(items):
            if high is None:
                field = f"{_PATH}[{index}].ranges[{position}].max"
                value = objects_at(models[index], "ranges")[position]["max"]
                yield causes.invalid(field, value, "is not a quantity")
    readable = [
        [(name, low, high) for name, low, high in items if low is not None and high is not None]
        for items in ranges
    ]
    if readable == ranges and (reason := _disorder(models, readable)):
        yield causes.invalid(_PATH, models, reason)


def _disorder(models: Sequence[Json], ranges: Sequence[Sequence[tuple[str, int, int]]]) -> str:
    """Return Karmada's message about empty, overlapping or disconnected grades; empty if the grades are valid."""
    if any(high <= low for items in ranges for _, low, high in items):
        return "The max value of each resource must be greater than the min value"
    for (model, items), (next_model, next_items) in pairwise(zip(models, ranges, strict=True)):
        if model.get("grade") == next_model.get("grade"):
            return "The grade of each models should not be the same"
        if [name for name, _, _ in items] != [name for name, _, _ in next_items]:
            return "The resource types of each models should be the same, in the same order"
        if any(high != low for (_, _, high), (_, low, _) in zip(items, next_items, strict=True)):
            return "Model intervals for resources must be contiguous and non-overlapping"
    return ""


def _range(item: Json) -> tuple[str, int | None, int | None]:
    """Return the resource of a range, and its bounds in billionths: 0 if absent, None if malformed."""
    low, high = (quantity.nano_units_of(item.get(bound, 0)) for bound in ("min", "max"))
    return str(item.get("name")), low, high
