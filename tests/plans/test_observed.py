"""Plans for an existing Karmada: moves of a recording are planned from the state before them, and then compared."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine.cli import main
from engine.log import sqlite
from tests import recordings
from tests.recordings import Change

pytestmark = pytest.mark.slow

RECORDING = "calm-1"
BINDINGS = frozenset({"ResourceBinding", "ClusterResourceBinding"})
Placements = dict[str, dict[str, int]]


class Move(NamedTuple):
    """A move of the recording: the words of the plan, and the versions before it and before the next one."""

    words: tuple[str, ...]
    before: int
    after: int


MOVES = (
    Move(("scale", "job/log-137", "5", "-n", "red"), 8728, 8906),
    Move(("scale", "statefulset/api-221", "1", "-n", "red"), 9672, 9701),
    Move(("scale", "deploy/api-060", "90", "-n", "green"), 10523, 10586),
    Move(("scale", "deploy/feed-253", "12", "-n", "blue"), 13402, 13439),
)


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    return list(recordings.own_changes(RECORDING))


async def observed(directory: Path, changes: Sequence[Change]) -> None:
    """Write the log of an observer that has seen these changes."""
    log = await sqlite.SqliteLog.open(directory)
    await log.append(recordings.observed(changes))
    await log.aclose()


def placements(changes: Sequence[Change], version: int) -> Placements:
    """Where Karmada had each binding at a resourceVersion."""
    known: Placements = {}
    for change in changes:
        kind, namespace, name = change.object_key
        if kind not in BINDINGS or change.version > version:
            continue
        key = f"{namespace}/{name}" if namespace else name
        known.pop(key, None)
        if not change.is_gone:
            spec = json.loads(bytes(change.manifest))["spec"]
            known[key] = {target["name"]: target.get("replicas", 0) for target in spec.get("clusters", ())}
    return known


def planned(directory: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    code = main.run(["plan", *words, "--log", str(directory), "--json"])
    printed = capsys.readouterr()
    assert code in {0, 2}, printed.err
    return json.loads(printed.out)


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.words[1])
def test_plan_equals_the_later_decision_of_karmada(
    changes: list[Change], tmp_path: Path, capsys: pytest.CaptureFixture[str], move: Move
) -> None:
    asyncio.run(observed(tmp_path, [change for change in changes if change.version <= move.before]))
    prediction = planned(tmp_path, capsys, *move.words)["prediction"]
    after = placements(changes, move.before)
    for change in prediction["changed"]:
        after[change["key"]] = change["after"]
    assert after == placements(changes, move.after)
    assert len(prediction["changed"]) == 1


def test_plan_of_a_taint_moves_the_workloads_that_karmada_moved(
    changes: list[Change], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two clusters have a taint that some tolerate for a while: these come and go in Karmada, and in the plan."""
    asyncio.run(observed(tmp_path, [change for change in changes if change.version <= 18996]))
    prediction = planned(tmp_path, capsys, "taint", "lab-03", "maintenance:NoExecute")["prediction"]
    before, after = placements(changes, 18996), placements(changes, 20373)
    left = {
        key for key, clusters in before.items() if "lab-03" in clusters and "lab-03" not in after.get(key, ())
    }
    planned_to_leave = {
        changed_binding["key"]
        for changed_binding in prediction["changed"]
        if "lab-03" in changed_binding["before"]
    }
    assert left
    assert left <= planned_to_leave


def test_plans_read_the_past(
    changes: list[Change], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --as-of a plan starts from what was observed up to a number of the log."""
    move = MOVES[1]
    asyncio.run(observed(tmp_path, [change for change in changes if change.version <= move.after]))
    number = sum(change.version <= move.before for change in changes)
    prediction = planned(tmp_path, capsys, *move.words, "--as-of", str(number))["prediction"]
    assert [changed_binding["key"] for changed_binding in prediction["changed"]] == [
        "red/api-221-statefulset"
    ]
    capsys.readouterr()
    assert main.run(["plan", *move.words, "--log", str(tmp_path)]) == 0
    assert "Nothing moves" in capsys.readouterr().out


def test_plan_of_an_observed_karmada_is_not_saved(
    changes: list[Change], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(observed(tmp_path, changes[:500]))
    words = ["plan", "fail", "fra-01", "--log", str(tmp_path), "-o", str(tmp_path / "plan.json")]
    assert main.run(words) == 1
    assert "can't be applied" in capsys.readouterr().err
    assert not (tmp_path / "plan.json").exists()
