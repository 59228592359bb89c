"""Resource models of Clusters: what the API server completes, and what it refuses."""

import pytest

from engine.karmada import defaults
from engine.writing.edits import objects
from events.json_values import Json, objects_at
from events.kube_objects import KubeObject
from tests.builders.manifests import cluster

NOW_MS = 1_767_225_600_000
UNBOUNDED = str(2**63 - 1)


def grades(*bounds: tuple[object, object], resource: str = "cpu") -> list[Json]:
    """A grade for each pair of bounds, all with this resource only."""
    return [
        {"grade": grade, "ranges": [{"name": resource, "min": low, "max": high}]}
        for grade, (low, high) in enumerate(bounds)
    ]


def completed(models: list[Json]) -> list[tuple[object, object]]:
    """Return the bounds of the first resource in each grade, as stored."""
    stored = defaults.with_defaults(KubeObject(cluster("member1", resourceModels=models)), NOW_MS)
    ranges = [objects_at(model, "ranges")[0] for model in stored.objects_at("spec", "resourceModels")]
    return [(item["min"], item["max"]) for item in ranges]


def test_grades_are_ordered_and_begin_at_zero_without_an_upper_bound() -> None:
    ordered = grades((1, 2), (2, 4))
    assert completed(ordered) == [("0", 2), (2, UNBOUNDED)]
    assert completed(ordered[::-1]) == [("0", 2), (2, UNBOUNDED)]
    assert completed(grades((1, 2))) == [("0", UNBOUNDED)]


def test_malformed_grades_are_left_to_the_schema() -> None:
    for grade in (None, True, "0", 1.5):
        model = {**grades((1, 2))[0], "grade": grade}
        assert completed([model]) == [(1, 2)]


REFUSED: list[tuple[list[Json], str]] = [
    (grades((0, 2), (3, 4)), "must be contiguous"),
    (grades((0, 2), (2, 2)), "must be greater than the min value"),
    ([*grades((0, 2)), *grades((2, 4))], "grade of each models should not be the same"),
    ([*grades((0, 2)), {**grades((2, 4), resource="memory")[0], "grade": 1}], "types of each models"),
    (grades((0, "101%"), (2, 4)), 'resourceModels[0].ranges[0].max: Invalid value: "101%"'),
]


@pytest.mark.parametrize(("models", "words"), REFUSED)
def test_grades_with_gaps_are_refused_unless_they_are_stored_already(models: list[Json], words: str) -> None:
    member = KubeObject(cluster("member1", resourceModels=models))
    assert words in ", ".join(cause.text for cause in objects.form_causes(member))
    assert objects.form_causes(member, member) == []
