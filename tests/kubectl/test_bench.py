"""The benchmark of the Kubernetes API: every figure is measured, and the baseline is included."""

import pytest

from engine.bench import kube

SMALL = kube.Sizes(bare=50, gets=20, paced=20, watchers=3, events=5)


@pytest.mark.slow
def test_benchmark_reports_each_figure_with_its_baseline() -> None:
    figures = kube.run(30, sizes=SMALL)

    assert (figures["bindings"], figures["list_bindings"], figures["watchers"]) == (30, 50, 3)
    for name in (
        "baseline_per_s",
        "create_per_s",
        "placed_per_s",
        "memory_kb_per_binding",
        "get_per_s",
        "list_mb",
        "watch_events_per_s",
    ):
        assert float(str(figures[name])) > 0
    for name in ("decision", "watch"):
        assert 0 < float(str(figures[f"{name}_p50_ms"])) <= float(str(figures[f"{name}_p99_ms"]))
    assert figures["reference"] == kube.REFERENCE
