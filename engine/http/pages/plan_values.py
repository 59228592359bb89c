"""Values for the pages about plans and drills. No HTTP here."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from engine.http.pages import binding_values
from engine.http.plans.jobs import Plan, State
from engine.plans import drills, predictions, summaries
from events import times

WORKLOADS_MAX: Final = 200
_EVENTS_MAX: Final = 200
BADGES: Final = {State.RUNNING: "waiting", State.DONE: "scheduled", State.FAILED: "failed"}
_PREDICTION: Final = msgspec.json.Decoder(predictions.Prediction)


class Bar(Struct, frozen=True, kw_only=True):
    """The replicas in a cluster before and after the planned change.

    ``kept``, ``gone`` and ``new`` are the widths in pixels of the replicas that stay, leave and are added.
    """

    cluster: str
    text: str
    kept: int
    gone: int
    new: int


class Effects:
    """The effect of each stored plan in one sentence; the effect of a finished plan is computed only once."""

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}

    def of(self, plans: Sequence[Plan]) -> list[tuple[Plan, str]]:
        """Return all of ``plans``, each with its effect."""
        finished = {plan.id for plan in plans if plan.state != State.RUNNING}
        texts = {plan.id: self._by_id.get(plan.id) or _effect(plan) for plan in plans}
        self._by_id = {plan_id: text for plan_id, text in texts.items() if plan_id in finished}
        return [(plan, texts[plan.id]) for plan in plans]


def shown(plan: Plan) -> dict[str, object]:
    """Return the values of one plan's page; ``prediction`` is None if there is none yet."""
    if plan.prediction is UNSET:
        return {"plan": plan, "effect": _effect(plan), "notes": plan.warnings, "prediction": None}
    prediction = _PREDICTION.decode(plan.prediction)
    disturbed = summaries.most_disturbed(prediction)
    listed = prediction.events[:_EVENTS_MAX]
    return {
        "plan": plan,
        "effect": summaries.summary(prediction),
        "notes": summaries.notes(prediction, plan.warnings),
        "prediction": prediction,
        "workloads": _workloads(disturbed[:WORKLOADS_MAX]),
        "more_workloads": max(len(disturbed) - WORKLOADS_MAX, 0),
        "loads": summaries.loads(prediction.clusters),
        "events": listed,
        "more_events": len(prediction.events) - len(listed) + prediction.omitted,
    }


def drill(latest: drills.Latest) -> dict[str, object]:
    """Return the values of the page about the newest drill; failures with the most missing replicas come first.

    ``ended`` is the time of the drill as text, empty before the first drill.
    """
    ordered = sorted(latest.results, key=lambda result: (-result.missing, -result.moved))
    return {
        "ended": times.to_text(latest.ended_ms) if latest.ended_ms else "",
        "results": [(result, _needed(result)) for result in ordered],
        "notes": list(dict.fromkeys(note for result in ordered for note in result.assumptions)),
    }


def _effect(plan: Plan) -> str:
    """Return the progress of a running plan, the effect of a finished one, or the reason of a failed one."""
    if plan.state == State.RUNNING:
        passed, horizon = summaries.duration(plan.passed_ms), summaries.duration(plan.horizon_ms)
        return f"{passed} of {horizon} passed in virtual time"
    return plan.reason if plan.prediction is UNSET else summaries.summary(_PREDICTION.decode(plan.prediction))


def _workloads(
    changes: Sequence[predictions.WorkloadChange],
) -> list[tuple[predictions.WorkloadChange, str, list[str], list[Bar]]]:
    """Return changed workloads with their ready replicas and details as text, and bars with a common scale."""
    counts = [count for change in changes for count in (*change.before.values(), *change.after.values())]
    most = max(counts, default=0)
    return [
        (
            change,
            summaries.ready(change),
            summaries.details(change),
            [_bar(name, change, most) for name in sorted(change.before.keys() | change.after.keys())],
        )
        for change in changes
    ]


def _bar(cluster: str, change: predictions.WorkloadChange, most: int) -> Bar:
    before, after = change.before.get(cluster, 0), change.after.get(cluster, 0)
    text = f"{before} → {after}" if before != after else str(after)
    if not before and not after:
        # The object has no replicas, for example a ConfigMap.
        is_kept = cluster in change.before and cluster in change.after
        text = "stays" if is_kept else "gone" if cluster in change.before else "new"
    return Bar(
        cluster=cluster,
        text=text,
        kept=binding_values.bar_pixels(min(before, after), most),
        gone=binding_values.bar_pixels(max(before - after, 0), most),
        new=binding_values.bar_pixels(max(after - before, 0), most),
    )


def _needed(result: drills.Result) -> str:
    """The resources that missing replicas need, or that they need a cluster; empty if failed clusters keep them all."""
    capacity = ", ".join(f"{name} {text}" for name, text in result.needed.items())
    is_unassigned = any(workload.unassigned for workload in result.suffering)
    return capacity or ("a cluster that the policies allow" if is_unassigned else "")
