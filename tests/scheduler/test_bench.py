"""The benchmark of the observer and the scheduler reports its figures and a baseline."""

import pytest

from engine.bench import observe

pytestmark = pytest.mark.slow

SMALL = observe.Sizes(changes=50, decided=10)


def test_benchmark_reports_each_figure_with_its_baseline() -> None:
    figures = observe.run(60, sizes=SMALL)
    assert figures["writes_per_binding"] == 2.0
    for name in ("baseline_per_s", "observed_per_s", "kb_per_binding", "restart_s", "decided_per_s"):
        assert float(str(figures[name])) > 0
    for name in ("lag", "decided"):
        assert 0 < float(str(figures[f"{name}_p50_ms"])) <= float(str(figures[f"{name}_p99_ms"]))
