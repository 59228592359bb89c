"""Every decision that a real control plane's scheduler made in the recordings is made again."""

import functools
from typing import Final

import msgspec
import pytest

from engine.cli import schedule_input
from engine.placement import decisions, fleet, schedule
from tests import recordings
from tests.recordings import Decision

_NEGATIVE: Final = "Clusters available replicas -"
"""Part of a message of the reference whose 32-bit sum of available replicas has wrapped around."""

UNEXPLAINED: Final = frozenset({("burst-1", 22008)})
"""By recording and resourceVersion: no recorded state of the clusters gives the reference's answer; it places one
replica of seven in another cluster, in the second in which clusters are tainted and come back."""


@functools.lru_cache(maxsize=32)
def fleet_of(clusters: recordings.Fleet) -> fleet.Fleet:
    return schedule_input.read_fleet(b"[" + b",".join(clusters) + b"]")


def question_of(decision: Decision) -> schedule_input.Input:
    """The question of `reballast schedule` for the basis of a recorded decision."""
    basis = msgspec.json.decode(decision.basis, type=dict[str, msgspec.Raw])
    fields = {
        "clusters": msgspec.Raw(b"[]"),
        "spec": basis["spec"],
        "status": basis.get("status", msgspec.Raw(b"{}")),
    }
    if decision.applied:
        fields["appliedPlacement"] = msgspec.Raw(decision.applied.encode())
    return msgspec.json.decode(msgspec.json.encode(fields), type=schedule_input.Input)


def agrees(decision: Decision, ours: decisions.Decision) -> bool:
    condition = decision.condition
    if decision.is_success:
        return ours.reason == decisions.SUCCESS and dict(ours.clusters) == decision.placed
    if ours.reason != condition.reason:
        return False
    # The reference runs its filters in the order of a map, so which of them a message counts is open.
    if condition.reason == "NoClusterFit":
        return ours.message.partition(":")[0] == condition.message.partition(":")[0]
    return ours.message == condition.message


def mismatch(recording: str, decision: Decision) -> str:
    """How our answer differs for every state of the clusters between basis and decision; empty if one agrees."""
    question = question_of(decision)
    answers: list[decisions.Decision] = []
    for clusters in decision.fleets:
        known = fleet_of(clusters)
        ours = schedule.schedule(schedule_input.read_request(question, known), known)
        if agrees(decision, ours):
            return ""
        answers.append(ours)
    if _NEGATIVE in decision.condition.message and answers[0].reason == decisions.SUCCESS:
        return ""
    first = answers[0]
    return (
        f"{recording} {decision.version} {decision.name}: {dict(first.clusters)} {first.reason} {first.message}; "
        f"recorded: {decision.placed} {decision.condition.reason} {decision.condition.message}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("recording", recordings.names())
def test_recorded_decisions_are_made_again(recording: str) -> None:
    count = 0
    wrong: dict[tuple[str, int], str] = {}
    for decision in recordings.decisions(recording):
        count += 1
        if found := mismatch(recording, decision):
            wrong[recording, decision.version] = found
    assert count > 2_000
    assert wrong.keys() == {case for case in UNEXPLAINED if case[0] == recording}, "\n".join(wrong.values())
