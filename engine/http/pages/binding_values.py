"""Values for the pages about bindings: state, reason, a bar for each cluster on a common scale, and explanation.

No HTTP here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine.domain import marks
from engine.http import summaries
from engine.objects.bindings import Binding, Report, Spec, Target
from engine.placement.explanations import GroupExplanation
from engine.reconcilers.explanation_types import Explained
from events import keys

BAR_PIXELS_MAX: Final = 240


class Bar(Struct, frozen=True, kw_only=True):
    """A cluster's share of a binding.

    ``wanted``, ``running`` and ``ready`` are the numbers of assigned, reported and ready replicas. For kinds without
    replicas they are None, and only ``applied`` is reported. ``pending`` is wanted minus ready.
    ``leaving``: the cluster is no longer a target but still runs replicas. ``finished``: how a Job ended there.
    """

    cluster: str
    wanted: int | None
    running: int | None
    ready: int | None
    pending: int
    applied: bool
    leaving: bool
    finished: str
    wanted_pixels: int
    ready_pixels: int


class Row(Struct, frozen=True, kw_only=True):
    """A binding; ``state`` is scheduled, failed, required (only as a dependency of other bindings) or waiting.

    ``ready`` excludes replicas in clusters that the binding is leaving. ``marks`` are short notes, such as suspensions
    and evictions.
    """

    key: str
    kind: str
    namespace: str
    name: str
    state: str
    reason: str
    message: str
    replicas: int | None
    ready: int
    bars: list[Bar]
    marks: list[str]


def rows(bindings: Sequence[Binding]) -> list[Row]:
    """The rows of a page. The longest bar has ``BAR_PIXELS_MAX`` pixels; a replica has the same width in all bars."""
    widest = max((_most(binding) for binding in bindings), default=0)
    return [_row(binding, widest) for binding in bindings]


def _row(binding: Binding, widest: int) -> Row:
    spec, namespace = binding.spec, binding.metadata.namespace
    scheduled = binding.status.condition("Scheduled")
    bars = _bars(binding, widest)
    is_scheduled = scheduled.status == "True"
    state = "scheduled" if is_scheduled else "failed"
    return Row(
        key=binding.key,
        kind=spec.resource.kind,
        namespace=namespace,
        name=spec.resource.name,
        state=state if scheduled.type else "required" if spec.required_by else "waiting",
        reason="" if is_scheduled else scheduled.reason,
        message="" if is_scheduled else scheduled.message,
        replicas=None if bars and all(bar.finished for bar in bars) else spec.replicas,
        ready=sum(bar.ready or 0 for bar in bars if not bar.leaving),
        bars=bars,
        marks=_marks(spec),
    )


def _marks(spec: Spec) -> list[str]:
    only = spec.suspension.dispatching_on_clusters.cluster_names
    marks = ["suspended"] if spec.suspension.dispatching else []
    if only:
        marks.append("suspended in " + ", ".join(only))
    marks += [f"evicting from {task.from_cluster}: {task.reason}" for task in spec.graceful_eviction_tasks]
    return marks + [f"required by {need.namespace}/{need.name}" for need in spec.required_by]


def _bars(binding: Binding, widest: int) -> list[Bar]:
    """Bars of the clusters to which a binding or its dependents are assigned, then of other clusters with replicas."""
    targets = binding.targets
    reports = {report.cluster_name: report for report in binding.status.aggregated_status}
    left = [name for name, report in reports.items() if name not in targets and report.count("replicas")]
    return [_bar(name, targets.get(name), reports.get(name, Report()), widest) for name in (*targets, *left)]


def _bar(name: str, target: Target | None, report: Report, widest: int) -> Bar:
    desired = target.replicas if target is not None else 0
    running, ready = report.count("replicas"), report.ready
    return Bar(
        cluster=name,
        wanted=desired,
        running=running,
        ready=ready,
        pending=max((desired or 0) - (ready or 0), 0),
        applied=report.applied,
        leaving=target is None,
        finished=report.finished,
        wanted_pixels=bar_pixels(max(desired or 0, running or 0), widest),
        ready_pixels=bar_pixels(ready or 0, widest),
    )


def _most(binding: Binding) -> int:
    desired = (target.replicas or 0 for target in binding.spec.clusters)
    running = (item.count("replicas") or 0 for item in binding.status.aggregated_status)
    return max((*desired, *running), default=0)


def bar_pixels(count: int, widest: int) -> int:
    """Width in pixels of ``count`` replicas if ``widest`` replicas have the longest bar; at least 2 for a count > 0."""
    return max(BAR_PIXELS_MAX * count // max(widest, 1), 2) if count else 0


def policy(binding: Binding) -> str:
    """The policy that claims a binding, as ``PropagationPolicy default/nginx``; empty if there is none."""
    claim = marks.claiming_policy(binding.metadata.annotations)
    return "" if claim is None else f"{claim.kind} {keys.full_name(claim.namespace, claim.name)}"


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a binding was placed as it is: facts about the decision, and the affinity groups that were tried.

    Each group has a title, and whether its result was applied.
    """

    facts: list[tuple[str, str]]
    groups: list[tuple[GroupExplanation, str, bool]]


def explanation(explained: Explained) -> Explanation:
    """Convert the explanation of a binding's placement for display."""
    basis, mode = explained.basis, explained.mode
    facts = [
        ("Result", summaries.result(explained, _counts(explained.clusters))),
        ("Before", _counts(explained.previous)),
        ("Trigger", f"{explained.trigger}{f' ({mode})' if mode else ''}"),
        ("Overrides", _by_name(explained.overrides)),
        ("Required by", _by_name(explained.required_by)),
        ("Message", explained.message),
        *summaries.further_lines(explained),
        ("Decided", summaries.decided(explained)),
        ("Basis", f"step {basis.step} of shard {basis.shard}, rules {basis.release}"),
    ]
    groups: list[tuple[GroupExplanation, str, bool]] = []
    for group in explained.explanation.groups if explained.explanation else ():
        refusal = summaries.refusal(explained, group)
        groups.append((group, summaries.group_title(group, refusal), not refusal))
    return Explanation(facts=[fact for fact in facts if fact[1]], groups=groups)


def _counts(clusters: Mapping[str, int]) -> str:
    return summaries.spread(clusters, ": ")


def _by_name(lists: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in lists.items())
