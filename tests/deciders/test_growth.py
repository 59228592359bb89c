"""Cost per kind of input: ten times the size costs at most 12.6 times as much."""

import pytest

from engine.bench import growth, growth_inputs
from engine.log import port

SIZES = (20, 200)
LARGER = {"clusters that fail": 2, "clusters that fail one by one": 2, "workloads that need one object": 2}
"""Size factors of inputs with a high cost per item: only larger sizes show another cost that grows faster."""

PARTS = ("decide", "recover", "views")


@pytest.mark.slow
@pytest.mark.parametrize("name", growth_inputs.CASES)
def test_cost_of_an_input_grows_with_its_size(name: str) -> None:
    sizes = (size * LARGER.get(name, 1) for size in SIZES)
    smaller, larger = (growth.measure(name, size, parts=PARTS) for size in sizes)

    exponents = {part: growth.exponent([smaller[part].operations, larger[part].operations]) for part in PARTS}
    assert max(exponents.values()) <= growth.EXPONENT_MAX, exponents


def test_operation_counts_are_stable_between_runs() -> None:
    growth.measure("labels of a workload", 10)  # fills caches that all runs share
    runs = [growth.measure("labels of a workload", 10) for _ in range(6)]

    for part in growth.PARTS:
        # A slow machine adds pauses of the event loop, which execute a few lines each.
        once, again = (min(run[part].operations for run in half) for half in (runs[:3], runs[3:]))
        assert again == pytest.approx(once, rel=0.01)


def test_views_fold_all_records_of_a_log_that_one_read_does_not_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = growth.measure("labels of a workload", 10, parts=("views",))
    monkeypatch.setattr(port, "READ_BYTES_MAX", 2_000)
    in_portions = growth.measure("labels of a workload", 10, parts=("views",))
    assert in_portions["views"].operations == pytest.approx(whole["views"].operations, rel=0.1)


def test_quadratic_cost_has_exponent_two() -> None:
    assert growth.exponent([1, 100, 10_000]) == 2
