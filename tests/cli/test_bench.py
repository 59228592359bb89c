"""Each benchmark completes and reports its figures; the figures themselves are not asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.bench import inputs, storm
from engine.log import port, reading, sqlite
from engine.log.sqlite_reading import SqliteReader
from events.json_values import Json

pytestmark = pytest.mark.slow


def measured(*words: str, code: int = 0) -> Json:
    """Run ``reballast bench`` and return its JSON output."""
    command = [sys.executable, "-m", "engine.cli", "bench", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    report: Json = {"error": done.stderr} if code else json.loads(done.stdout)
    return report


def figures(report: Json, *names: str) -> list[float]:
    return [float(str(report[name])) for name in names]


def test_storm_benchmark_reports_its_figures_and_a_baseline() -> None:
    report = measured("storm", "--bindings", "50")

    assert report["bindings"] == 50
    assert all(
        figures(report, "applied_per_s", "taint_s", "rebalance_s", "single_p50_ms", "baseline_s", "ratio")
    )


async def test_storm_baseline_appends_all_records_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(port, "READ_BYTES_MAX", 20_000)
    log = await sqlite.SqliteLog.open(tmp_path / "run")
    await inputs.append(log, [inputs.deployment(index) for index in range(200)])
    await log.aclose()
    count, _ = await storm.append_alone(tmp_path / "run", tmp_path / "baseline")
    assert count == 200
    run, baseline = (SqliteReader(tmp_path / name) for name in ("run", "baseline"))
    assert [record async for record in reading.of_all(run)] == [
        record async for record in reading.of_all(baseline)
    ]
    for reader in (run, baseline):
        await reader.aclose()


def test_failover_benchmark_moves_the_workloads_of_a_tenth_of_the_clusters() -> None:
    report = measured("failover", "--clusters", "10", "--bindings", "60")

    assert report["clusters_failed"] == 1
    for count in (6, 60):
        (moved,) = figures(report, f"moved_{count}")
        assert 0 < moved <= count
        assert all(figures(report, f"moved_{count}_s", f"records_{count}", f"ratio_{count}"))


def test_plan_benchmark_predicts_the_move_that_it_then_makes() -> None:
    report = measured("plan", "--bindings", "60", "--moved", "20", "--clusters", "20")

    assert (report["bindings"], report["moved"], report["taint_moved"]) == (60, 20, 20)
    assert all(
        figures(
            report, "first_s", "policy_s", "taint_s", "drill_20_s", "peak_mb", "ratio_policy", "ratio_taint"
        )
    )
    assert all(figures(report, "decided_p99_ms", "decided_during_plan_p50_ms", "decided_during_plan_p99_ms"))


def test_plan_benchmark_refuses_to_move_more_workloads_than_exist() -> None:
    report = measured("plan", "--bindings", "5", "--moved", "6", code=2)

    assert "6 are more than all 5 Deployments" in str(report["error"])


def test_failover_benchmark_refuses_a_cluster_count_not_divisible_by_ten() -> None:
    report = measured("failover", "--clusters", "15", code=2)

    assert "15 can't be grouped by 10" in str(report["error"])


def test_failover_benchmark_refuses_fewer_than_ten_workloads() -> None:
    report = measured("failover", "--clusters", "10", "--bindings", "9", code=2)

    assert "a tenth of 9 can't be measured" in str(report["error"])


def test_kafka_benchmark_refuses_so_few_inputs_that_nothing_is_left_after_the_warm_up() -> None:
    report = measured("kafka", "--log", "kafka://127.0.0.1:9", "--bindings", "500", code=2)

    assert "500 are too few" in str(report["error"])


def test_verify_benchmark_proves_a_tenth_and_a_hundredth_too() -> None:
    report = measured("verify", "--records", "2000", "--processes", "1")

    assert all(figures(report, "verify_20_per_s", "verify_200_ms_per_step", "verify_2000_mb"))
    assert all(figures(report, "audit_per_s", "ratio_verify", "ratio_audit"))


@pytest.mark.parametrize("words", [("log", "--events", "2000"), ("replay", "--bindings", "20")], ids=" ".join)
def test_log_and_replay_benchmarks_report_rates(words: tuple[str, ...]) -> None:
    report = measured(*words)
    rates = [name for name in report if "per_s" in name or "ratio" in name]

    assert rates
    assert all(figures(report, *rates))


def test_command_takes_at_most_10_kb_of_disk_and_memory_stays_bounded() -> None:
    # Enough commands that the 200 objects themselves, whose size does not grow, count little.
    report = measured("mixed", "--commands", "1200")

    size, server_mb, views_mb = figures(report, "bytes_per_command", "server_mb_100", "views_mb_100")
    assert 0 < size <= 10 * 1024
    assert 0 < server_mb + views_mb <= 180
