"""How many pods a PodDisruptionBudget wants healthy."""

import msgspec
import pytest

from engine.works import budgets
from events.json_values import Json


def read(**spec: object) -> budgets.Budget | None:
    value: Json = {"spec": spec}
    return budgets.read(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("limit", "expected", "desired"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": "50%"}, 5, 3),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "30%"}, 5, 3),
        ({"maxUnavailable": 9}, 5, 0),
        ({"minAvailable": "half"}, 5, 0),
        ({"minAvailable": "100000000000000000000%"}, 5, 0),
        ({}, 5, 0),
    ],
)
def test_limits_are_numbers_or_parts_of_the_expected_pods(limit: Json, expected: int, desired: int) -> None:
    budget = read(selector={}, **limit)
    assert budget is not None
    assert budget.desired(expected) == desired


@pytest.mark.parametrize(
    "spec", [{}, {"selector": None}, {"selector": 7}, {"selector": {}, "minAvailable": [1]}]
)
def test_budget_that_selects_nothing_or_cannot_be_read_is_none(spec: Json) -> None:
    assert read(**spec) is None
