"""``shadow report`` on a log: counts, examples, and the exit code for continuous integration."""

import asyncio
import json
from pathlib import Path

import pytest

from engine.cli import main
from engine.log import sqlite
from engine.observer import observation
from events import observations

DONE = observations.ShadowCondition(clusters={"east": 2}, reason="Success", message="done")
NONE = observations.ShadowCondition(clusters={}, reason="NoClusterFit", message="0/1 clusters are available")


async def written(directory: Path, verdicts: list[str]) -> None:
    log = await sqlite.SqliteLog.open(directory)
    compared = [
        observations.DecisionCompared(
            kind="ResourceBinding",
            name="web-deployment",
            namespace="shop",
            version=number,
            basis=number,
            verdict=verdict,
            why="" if verdict == "same" else "a reason",
            observed=DONE,
            computed=DONE if verdict == "same" else NONE,
        )
        for number, verdict in enumerate(verdicts)
    ]
    records = [
        observation.record(comparison, str(comparison.version), "/observed/karmada", 1)
        for comparison in compared
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
    assert main.run(["shadow", "report", "--log", str(tmp_path), "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert (report["decisions"], report["verdicts"][worst]) == (4, 4 if worst == "same" else 1)
