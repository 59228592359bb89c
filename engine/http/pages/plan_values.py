"""Values for the pages about plans and drills. No HTTP here."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from engine.http import summaries as record_summaries
from engine.http.pages import binding_values
from engine.http.plans.jobs import Plan, State
from engine.plans import drills, predictions, summaries
from events import times

WORKLOADS_MAX: Final = 200
_EVENTS_MAX: Final = 200
_SUFFERING_MAX: Final = 5
_BADGES: Final = {State.RUNNING: "waiting", State.DONE: "scheduled", State.FAILED: "failed"}
_PREDICTION: Final = msgspec.json.Decoder(predictions.Prediction)


class Row(Struct, frozen=True, kw_only=True):
    """A plan in the list; ``text`` is its effect, its progress or the reason of its failure."""

    id: str
    change: str
    created: str
    state: str
    badge: str
    text: str


class Bar(Struct, frozen=True, kw_only=True):
    """The replicas in a cluster before and after the planned change.

    ``kept``, ``gone`` and ``new`` are the widths in pixels of the replicas that stay, leave and are added.
    """

    cluster: str
    text: str
    kept: int
    gone: int
    new: int


class Workload(Struct, frozen=True, kw_only=True):
    """A workload that a plan changes; ``link`` is its key, empty if it has no binding yet."""

    link: str
    kind: str
    namespace: str
    name: str
    ready: str
    details: list[str]
    missing: int
    bars: list[Bar]


class Event(Struct, frozen=True, kw_only=True):
    """A predicted event; ``after`` is the virtual time until it happens, as text."""

    after: str
    name: str
    subject: str
    summary: str


class Shown(Struct, frozen=True, kw_only=True):
    """A plan, with its prediction if there is one yet."""

    row: Row
    facts: list[tuple[str, str]] = []
    workloads: list[Workload] = []
    more_workloads: int = 0
    loads: list[summaries.Load] = []
    notes: list[str] = []
    events: list[Event] = []
    more_events: int = 0


class Outage(Struct, frozen=True, kw_only=True):
    """A failure that the newest drill predicted, and its effect.

    ``moved`` and ``disturbed`` are numbers of workloads. ``missing`` is the number of replicas that no working cluster
    runs at the end. ``needed`` are the resources that these replicas need, except those that stay assigned to a failed
    cluster.
    ``recovered`` is the time until the last change of a binding or of its ready replicas, or "never" if replicas are
    missing.
    """

    domain: str
    name: str
    clusters: tuple[str, ...]
    moved: int
    disturbed: int
    missing: int
    needed: str
    recovered: str
    remedies: list[str]
    missing_capacity: list[tuple[str, int]]
    more_missing_capacity: int


class Drill(Struct, frozen=True, kw_only=True):
    """The newest drill; ``ended`` is its time as text, empty before the first drill."""

    ended: str
    outages: list[Outage]
    notes: list[str]


class Summaries:
    """One-sentence summaries of the kept plans; that of a finished plan is computed only once."""

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}

    def rows(self, plans: Sequence[Plan]) -> list[Row]:
        """Return the rows of all kept plans."""
        finished = {plan.id for plan in plans if plan.state != State.RUNNING}
        texts = {plan.id: self._by_id.get(plan.id) or _effect(plan) for plan in plans}
        self._by_id = {plan_id: text for plan_id, text in texts.items() if plan_id in finished}
        return [_row(plan, texts[plan.id]) for plan in plans]


def shown(plan: Plan) -> Shown:
    """Return the values of one plan's page."""
    if plan.prediction is UNSET:
        return Shown(row=_row(plan, _effect(plan)), notes=plan.warnings)
    prediction = _PREDICTION.decode(plan.prediction)
    disturbed = summaries.most_disturbed(prediction)
    listed = prediction.events[:_EVENTS_MAX]
    return Shown(
        row=_row(plan, summaries.summary(prediction)),
        facts=[
            ("Based on", f"number {prediction.number} of the log, at {prediction.time}"),
            ("Stable after", summaries.duration(prediction.settled_ms)),
            ("Horizon", summaries.duration(prediction.horizon_ms)),
            ("Workloads", f"{len(prediction.moved)} of {prediction.workloads} move"),
        ],
        workloads=_workloads(disturbed[:WORKLOADS_MAX]),
        more_workloads=max(len(disturbed) - WORKLOADS_MAX, 0),
        loads=summaries.loads(prediction.clusters),
        notes=summaries.notes(prediction, plan.warnings),
        events=[_event(event) for event in listed],
        more_events=len(prediction.events) - len(listed) + prediction.omitted,
    )


def drill(latest: drills.Latest) -> Drill:
    """Return the values of the page about the newest drill, with the most costly failures first."""
    ordered = sorted(latest.results, key=lambda result: (-result.missing, -result.moved))
    return Drill(
        ended=times.to_text(latest.ended_ms) if latest.ended_ms else "",
        outages=[_outage(result) for result in ordered],
        notes=list(dict.fromkeys(note for result in ordered for note in result.assumptions)),
    )


def _row(plan: Plan, text: str) -> Row:
    return Row(
        id=plan.id,
        change=plan.change,
        created=plan.created,
        state=plan.state.value,
        badge=_BADGES[plan.state],
        text=text,
    )


def _effect(plan: Plan) -> str:
    """Return the progress of a running plan, the effect of a finished one, or the reason of a failed one."""
    if plan.state == State.RUNNING:
        passed, horizon = summaries.duration(plan.passed_ms), summaries.duration(plan.horizon_ms)
        return f"{passed} of {horizon} passed in virtual time"
    return plan.reason if plan.prediction is UNSET else summaries.summary(_PREDICTION.decode(plan.prediction))


def _workloads(changes: Sequence[predictions.WorkloadChange]) -> list[Workload]:
    """Convert the changed workloads for display; their bars have a common scale."""
    counts = [count for change in changes for count in (*change.before.values(), *change.after.values())]
    most = max(counts, default=0)
    return [
        Workload(
            link=change.key if change.before else "",
            kind=change.template.kind,
            namespace=change.template.namespace,
            name=change.template.name,
            ready=summaries.ready(change),
            details=summaries.details(change),
            missing=change.missing,
            bars=[_bar(name, change, most) for name in sorted(change.before.keys() | change.after.keys())],
        )
        for change in changes
    ]


def _bar(cluster: str, change: predictions.WorkloadChange, most: int) -> Bar:
    before, after = change.before.get(cluster, 0), change.after.get(cluster, 0)
    text = f"{before} → {after}" if before != after else str(after)
    if not before and not after:
        # A kind without replicas, such as a ConfigMap.
        is_kept = cluster in change.before and cluster in change.after
        text = "stays" if is_kept else "gone" if cluster in change.before else "new"
    return Bar(
        cluster=cluster,
        text=text,
        kept=binding_values.bar_pixels(min(before, after), most),
        gone=binding_values.bar_pixels(max(before - after, 0), most),
        new=binding_values.bar_pixels(max(after - before, 0), most),
    )


def _event(event: predictions.PredictedEvent) -> Event:
    return Event(
        after=summaries.duration(event.after_ms),
        name=record_summaries.event_name(event.type),
        subject=event.subject,
        summary=record_summaries.fields(event.data, event.subject),
    )


def _outage(result: drills.Result) -> Outage:
    missing_capacity = [(workload.key, workload.missing) for workload in result.suffering if workload.missing]
    return Outage(
        domain=result.outage.domain,
        name=result.outage.name,
        clusters=result.outage.clusters,
        moved=result.moved,
        disturbed=len(result.suffering),
        missing=result.missing,
        needed=_needed(result),
        recovered="never" if result.recovered_ms is None else summaries.duration(result.recovered_ms),
        remedies=[remedy.text for remedy in result.remedies],
        missing_capacity=missing_capacity[:_SUFFERING_MAX],
        more_missing_capacity=max(len(missing_capacity) - _SUFFERING_MAX, 0),
    )


def _needed(result: drills.Result) -> str:
    """The needs of missing replicas, as text; empty if all of them stay assigned to failed clusters."""
    capacity = ", ".join(f"{name} {text}" for name, text in result.needed.items())
    is_unassigned = any(workload.unassigned for workload in result.suffering)
    return capacity or ("a cluster that the policies allow" if is_unassigned else "")
