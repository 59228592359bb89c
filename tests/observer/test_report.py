"""``shadow report`` on a log: counts, examples, and the exit code for continuous integration."""

import asyncio
import json
from pathlib import Path

import pytest

from engine.cli import main
from engine.log import sqlite
from engine.observer import observation, report
from events import observations

DONE = observations.ShadowCondition(clusters={"east": 2}, reason="Success", message="done")
REASONS = (
    observations.ShadowReason(cluster="east", failed=("a taint", "no API")),
    observations.ShadowReason(cluster="west", allocatable=0),
)
NONE = observations.ShadowCondition(clusters={}, reason="NoClusterFit", message="0/1 clusters are available")


def comparison(verdict: str, version: int = 0) -> observations.DecisionCompared:
    return observations.DecisionCompared(
        kind="ResourceBinding",
        name="web-deployment",
        namespace="shop",
        version=version,
        basis=version,
        verdict=verdict,
        why="" if verdict == "same" else "a reason",
        observed=DONE,
        computed=DONE if verdict == "same" else NONE,
        reasons=REASONS,
    )


async def written(directory: Path, verdicts: list[str]) -> None:
    log = await sqlite.SqliteLog.open(directory)
    compared = [comparison(verdict, number) for number, verdict in enumerate(verdicts)]
    records = [
        observation.record(decision, str(decision.version), "/observed/karmada", 1) for decision in compared
    ]
    await log.append(records)
    await log.aclose()


@pytest.mark.parametrize(("worst", "code"), [("same", 0), ("race", 0), ("known", 0), ("unexplained", 2)])
def test_exit_code_says_whether_a_decision_is_unexplained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], worst: str, code: int
) -> None:
    asyncio.run(written(tmp_path, ["same", "same", "same", worst]))
    assert main.run(["shadow", "report", "--log", str(tmp_path)]) == code
    shown = capsys.readouterr().out
    assert ("shop/web-deployment at 3: a reason" in shown) == (worst != "same")
    assert ("Reballast: nowhere (NoClusterFit: 0/1 clusters are available)" in shown) == (worst != "same")
    assert ("east:    a taint; no API" in shown) == (worst != "same")
    assert " west:" not in shown
    assert main.run(["shadow", "report", "--log", str(tmp_path), "--json"]) == code
    counted = json.loads(capsys.readouterr().out)
    assert (counted["decisions"], counted["verdicts"][worst]) == (4, 4 if worst == "same" else 1)


def test_report_has_the_newest_differences_until_it_is_cleared() -> None:
    known = report.Report()
    for version in range(report.EXAMPLES_MAX + 2):
        for verdict in ("same", "race"):
            known.take(comparison(verdict, version))
    assert list(known.examples) == ["race"]
    assert [compared.version for compared in known.examples["race"]] == list(
        range(2, report.EXAMPLES_MAX + 2)
    )
    known.clear()
    assert known == report.Report()


def test_reasons_of_all_clusters_are_given_if_no_result_differs() -> None:
    decision = comparison("same")
    assert report.differing(decision) == list(REASONS)
    assert [report.reason(reason) for reason in REASONS] == ["a taint; no API", "capacity 0"]
    assert report.reason(observations.ShadowReason(cluster="west")) == "eligible"
