"""Recorded reconciles of Karmada's rebalancer, replayed against the owner shard.

One recorded reconcile is one step. An API error on a binding is an answer that is missing in this step; an
error on the status is a step that was never committed. Two deliberate differences from Karmada are not
compared: which bindings are triggered (here every requested one gets a fresh decision), and the conflict that
Karmada meets when it deletes an object that it has just patched, which only delays the deletion by one
reconcile.
"""

from collections import Counter
from typing import Any

import msgspec
import pytest

from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.domain.rebalancers import Observed
from engine.reconcilers import recovery
from events import codec, keys, links, records, shapes, specs, topics
from events.records import Envelope
from events.times import to_text
from tests import vectors
from tests.builders import manifests

_NAME = "demo"
_KEY = keys.rebalancer_key(_NAME)
_SHARD = keys.shard_of(_KEY)
_OK = 200
_NOT_FOUND = 404
_START_MS = 1_700_000_000_000


class OwnerShard:
    """The rebalancer's owner shard and the bindings of other shards, as one recorded run sees them."""

    def __init__(self) -> None:
        self.history: list[records.StoredRecord | int] = []
        self.fold: ShardFold = recovery.new_fold(_SHARD)
        self.offsets: Counter[str] = Counter()
        self.questions: list[links.RescheduleRequested] = []
        self.bindings: dict[str, str] = {}
        self.now_ms = _START_MS
        self.deleted = False
        self.doomed: specs.RebalancerDeleted | None = None

    def write(self, data: shapes.Event) -> None:
        topic = data.event_type.topic
        offset = self.offsets[topic]
        self.offsets[topic] += 1
        head = Envelope(id=f"{topic}-{offset}", source="/test", type="", time=to_text(self.now_ms))
        record = codec.encode(data, head, partition=_SHARD, key=_KEY)
        stored = records.stored(record, offset, len(self.history) + 1)
        self.history.append(stored)
        self.fold.take(stored)

    def step(self) -> list[shapes.Event]:
        if not self.fold.is_due(self.now_ms):
            return []
        self.history.append(self.now_ms)
        step = self.fold.decide(Facts(), self.now_ms, 1_000)
        decoded = [codec.decode(record) for record in step.records]
        return [item.data for item in decoded if isinstance(item, codec.Decoded)]

    def forget_steps_after(self, length: int) -> None:
        """Drop the steps after a length, as a crash before the commit does; the inputs stay."""
        kept = self.history[:length] + [
            entry for entry in self.history[length:] if not isinstance(entry, int)
        ]
        inputs = [
            entry
            for entry in kept
            if isinstance(entry, int) or entry.topic != topics.LINKS or entry in self.history[:length]
        ]
        self.fold = recovery.new_fold(_SHARD)
        self.history = inputs
        for entry in inputs:
            if isinstance(entry, int):
                self.fold.decide(Facts(), entry, 1_000)
            else:
                self.fold.take(entry)
        self.offsets[topics.LINKS] = sum(
            not isinstance(entry, int) and entry.topic == topics.LINKS for entry in inputs
        )

    def reconcile(self, step: dict[str, Any]) -> dict[str, Any]:
        """Replay one recorded reconcile; return the resulting state."""
        self._prepare(step)
        failures = {failure["on"]: failure for failure in step.get("failures", [])}
        before = self._shown()
        if self.doomed and not self.deleted:
            self.write(self.doomed)
            self.doomed = None
            self.deleted = _KEY not in self.fold.state.rebalancers
        if self.deleted or "getRebalancer" in failures:
            return self._outcome(before)
        checkpoint, questions = len(self.history), list(self.questions)
        events = self._run(step)
        if "patchStatus" in failures and any(not isinstance(e, specs.RebalancerDeleted) for e in events):
            self.questions = questions
            self.forget_steps_after(checkpoint)
            return self._outcome(before)
        self.doomed = next((event for event in events if isinstance(event, specs.RebalancerDeleted)), None)
        outcome = self._outcome(before)
        if self.doomed and outcome["finishTimeMoved"] is False:
            self.deleted = True
            return self._outcome(before)
        return outcome

    def _prepare(self, step: dict[str, Any]) -> None:
        for binding in step.get("addBindings", []):
            self.bindings[_binding_key(binding)] = binding.get("triggered", "")
        for binding in step.get("removeBindings", []):
            self.bindings.pop(_binding_key(binding), None)
        rebalancer = self.fold.state.rebalancers.get(_KEY)
        if rebalancer and rebalancer.finish_ms:
            # Real time passed during the recorded runs: whole seconds if a run does not say otherwise.
            self.now_ms += step.get("passSeconds", 1) * 1000
        if "spec" in step and not self.deleted:
            manifest = manifests.manifest(
                "apps.karmada.io/v1alpha1", "WorkloadRebalancer", _NAME, spec=step["spec"]
            )
            self.write(specs.RebalancerApplied(manifest=manifests.raw(manifest)))

    def _run(self, step: dict[str, Any]) -> list[shapes.Event]:
        events = self.step()
        self.questions += [event for event in events if isinstance(event, links.RescheduleRequested)]
        unanswered: list[links.RescheduleRequested] = []
        for question in self.questions:
            code = self._meets(question, step)
            if code not in (_OK, _NOT_FOUND):
                unanswered.append(question)
                continue
            is_found = code == _OK
            if is_found and self.bindings[question.key] != "after":
                self.bindings[question.key] = "same"
            self.write(
                links.RescheduleAnswered(
                    rebalancer=_NAME,
                    uid=question.uid,
                    generation=question.generation,
                    workload=question.workload,
                    result="Successful" if is_found else "Failed",
                    reason="" if is_found else "ReferencedBindingNotFound",
                )
            )
        self.questions = unanswered
        return events + self.step()

    def _meets(self, question: links.RescheduleRequested, step: dict[str, Any]) -> int:
        """Return what Karmada meets at the binding: it reads it, and writes it only to move the trigger."""
        failures = _failures(question.workload, step)
        if "getBinding" in failures:
            return failures["getBinding"]
        if question.key not in self.bindings:
            return _NOT_FOUND
        is_written = self.bindings[question.key] in ("", "before")
        return failures.get("updateBinding", _OK) if is_written else _OK

    def _shown(self) -> tuple[int, int]:
        rebalancer = self.fold.state.rebalancers.get(_KEY)
        return (rebalancer.finish_ms, rebalancer.finished) if rebalancer else (0, 0)

    def _outcome(self, before: tuple[int, int]) -> dict[str, Any]:
        rebalancer = self.fold.state.rebalancers.get(_KEY)
        if self.deleted or rebalancer is None:
            return {"deleted": True}
        seen = [rebalancer.observed[order] for order in sorted(rebalancer.observed)]
        return {
            "deleted": False,
            "observedWorkloads": [_shown(workload) for workload in seen],
            "observedGeneration": rebalancer.started,
            "generation": rebalancer.generation,
            "finishTimeSet": rebalancer.finish_ms != 0,
            "finishTimeMoved": self._shown() != before,
            "pending": sum(not workload.result for workload in seen),
        }


def _shown(observed: Observed) -> dict[str, Any]:
    shown: dict[str, Any] = {"workload": msgspec.to_builtins(observed.workload)}
    if observed.result:
        shown["result"] = observed.result
    if observed.reason:
        shown["reason"] = observed.reason
    return shown


def _binding_key(binding: dict[str, Any]) -> str:
    return keys.binding_key(binding["kind"], binding.get("namespace", ""), binding["name"])


def _failures(ref: shapes.WorkloadRef, step: dict[str, Any]) -> dict[str, int]:
    """Return the error codes at a workload's binding in this reconcile, by call."""
    codes: dict[str, int] = {}
    for failure in step.get("failures", []):
        same = failure.get("kind") == ref.kind and failure.get("name") == ref.name
        if same and failure.get("namespace", "") == ref.namespace:
            codes.setdefault(failure["on"], int(failure["code"]))
    return codes


def _recorded(state: dict[str, Any]) -> dict[str, Any]:
    if state["deleted"]:
        return {"deleted": True}
    fields = (
        "deleted",
        "observedWorkloads",
        "observedGeneration",
        "generation",
        "finishTimeSet",
        "finishTimeMoved",
    )
    pending = int(state["error"].split()[0]) if "need retry" in state["error"] else None
    recorded = {name: state[name] for name in fields}
    recorded["pending"] = sum("result" not in seen for seen in state["observedWorkloads"])
    assert pending in (None, recorded["pending"])
    return recorded


_BY_FEATURE = vectors.by_feature(vectors.load("rebalancer-all"))


@pytest.mark.parametrize("feature", _BY_FEATURE)
def test_rebalancer_status_equals_the_recorded_one(feature: str) -> None:
    wrong: list[str] = []
    for vector in _BY_FEATURE[feature]:
        shard = OwnerShard()
        steps = msgspec.json.decode(vector.input)["steps"]
        got = [shard.reconcile(step) for step in steps]
        if not any(got == [_recorded(state) for state in run] for run in msgspec.json.decode(vector.accept)):
            wrong.append(f"{vector.id}: {got}")
    count = len(_BY_FEATURE[feature])
    assert not wrong, f"{count - len(wrong)} of {count} passed; first: {wrong[0]}"
