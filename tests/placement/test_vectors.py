"""Every recorded decision of Karmada's scheduler, one test per feature: trigger and answer."""

import sys

import msgspec
import pytest

from engine.placement import decisions, parsing, schedule
from tests import vectors
from tests.placement import differences


class Target(msgspec.Struct, frozen=True):
    name: str
    replicas: int = 0


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A valid state of the binding after the pass."""

    clusters: tuple[Target, ...]
    affinity_name: str
    condition: str
    errors: tuple[str, ...]
    retry: bool

    def agrees(self, decision: decisions.Decision) -> bool:
        condition = f"{decision.status}/{decision.reason}" if decision.status else ""
        return (
            dict(decision.clusters) == {target.name: target.replicas for target in self.clusters}
            and decision.affinity_name == self.affinity_name
            and condition == self.condition
            and decision.retry == self.retry
            and (decision.message in self.errors or (not self.errors and decision.status != "False"))
        )


VECTORS = vectors.by_feature(vector for group in vectors.groups("schedule") for vector in vectors.load(group))


def _mismatch(vector: vectors.Vector) -> str:
    """Return how our answer differs; empty if it is accepted."""
    question = msgspec.json.decode(vector.input, type=parsing.Input)
    fleet = parsing.read_fleet(bytes(question.clusters))
    request = parsing.read_request(question, fleet)
    decision = schedule.schedule(request, fleet)
    outcome = f"{vector.id}: {request.trigger} {decision.clusters} {decision.reason} {decision.message}"
    if request.trigger != vector.trigger:
        return f"{outcome}; the recorded trigger is {vector.trigger}"
    if decision.clusters != tuple(sorted(decision.clusters)) and decision.changed:
        return f"{outcome}; not in name order"
    if vector.id in differences.OURS:
        _, our_choice = differences.OURS[vector.id]
        right = dict(decision.clusters) == our_choice and decision.reason == decisions.SUCCESS
        return "" if right else f"{outcome}; by our choice it is {our_choice}"
    accepted = msgspec.json.decode(vector.accept, type=list[Answer])
    if any(answer.agrees(decision) for answer in accepted):
        return ""
    return f"{outcome}; recorded: {accepted}"


@pytest.mark.parametrize("feature", VECTORS)
def test_decisions_equal_those_of_the_reference_scheduler(feature: str) -> None:
    wrong = [mismatch for vector in VECTORS[feature] if (mismatch := _mismatch(vector))]
    passed = f"{feature}: {len(VECTORS[feature]) - len(wrong)} of {len(VECTORS[feature])}"
    sys.stdout.write(passed + "\n")
    assert not wrong, "\n".join([passed, *wrong[:5]])


def test_each_deliberate_difference_is_a_recorded_case_with_another_answer() -> None:
    recorded = {vector.id: vector for cases in VECTORS.values() for vector in cases}
    for name, (reason, our_choice) in differences.OURS.items():
        if name in recorded:
            answers = msgspec.json.decode(recorded[name].accept, type=list[Answer])
            theirs = [{target.name: target.replicas for target in answer.clusters} for answer in answers]
            assert reason
            assert our_choice not in theirs, name
