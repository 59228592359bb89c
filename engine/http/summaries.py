"""Short texts about log records and explanations, shown in tables of the CLI and on the web pages. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

import msgspec

from engine.domain import bindings
from engine.http import observed_texts
from engine.http.query.response_types import Entry
from engine.placement import explanations
from engine.placement.capacity import UNLIMITED
from engine.placement.explanations import ClusterExplanation, GroupExplanation, Step
from engine.plans.summaries import count
from engine.reconcilers.explanation_types import Explained, Preemption
from events import keys, shapes, times
from events.json_values import Json, as_object, object_at, objects_at
from events.kube_objects import KubeObject

_LARGE: Final = frozenset({"manifest", "placement", "ends", "managedFields", "apis"})
_OBJECT_VERSIONS: Final = frozenset(
    {"uid", "permanentId", "generation", "observedGeneration", "templateGeneration"}
)
_POSITIONS: Final = frozenset({"shard", "offset", "term", "step", "expects"})
_LEFT_OUT: Final = _LARGE | _OBJECT_VERSIONS | _POSITIONS
"""Fields that a summary does not show; JSON output has them."""

_INSTANTS_FROM_MS: Final = 10**11
"""A field in milliseconds is shown as an instant from this value on, as a duration below it."""

_DIVISIONS: Final = {
    explanations.KEPT: "the running replicas stay",
    explanations.SCALE_UP: "scale up by {}",
    explanations.SCALE_DOWN: "scale down to {}",
    explanations.FRESH: "{} divided from scratch",
    explanations.DUPLICATED: "{} in each cluster",
    explanations.BY_WEIGHT: "{} by static weights",
}

NOT_PREEMPTED: Final = {
    "NotEnough": "preempting all lower-priority bindings would not free enough capacity",
    "TooMany": "too many bindings would have to be preempted",
    "RoomCame": "capacity became free meanwhile",
}
"""Text for each reason why a binding preempts no other one."""


def event_name(event_type: str) -> str:
    """``schedule-decided`` for ``io.reballast.schedule-decided.v1``."""
    return event_type.removeprefix("io.reballast.").rpartition(".v")[0] or event_type


def summary(entry: Entry, *, is_named: bool = True) -> str:
    """A record in one line: the most informative fields of its data, or else its fault; then its user and its plan.

    ``is_named``: an observation begins with the name of its object.
    """
    named = (("by", entry.user), ("planned by", entry.plan))
    origins = ", ".join(f"{word} {name}" for word, name in named if name)
    return _summary(entry, is_named=is_named) + (f" ({origins})" if origins else "")


def _summary(entry: Entry, *, is_named: bool) -> str:
    if entry.fault:
        return entry.fault
    data = as_object(msgspec.json.decode(entry.data)) if entry.data else None
    if data is None:
        return ""
    observed = observed_texts.text(event_name(entry.type), data, is_named=is_named)
    return fields(data, entry.subject) if observed is None else observed


def fields(data: Json, subject: str) -> str:
    """The most informative fields of an event's data in one line, without the field ``key`` if it is ``subject``."""
    shown = [
        _field(name, value)
        for name, value in data.items()
        if _is_shown(name) and (name, value) != ("key", subject)
    ]
    created = ["created"] if data.get("expects") == 0 else []
    return " ".join([*created, *shown, *_of_manifest(KubeObject(object_at(data, "manifest")))])


def _is_shown(name: str) -> bool:
    return name not in _LEFT_OUT and not name.lower().endswith("digest")


def _of_manifest(manifest: KubeObject) -> Iterator[str]:
    """The fields of a workload's manifest that change most often: replicas and images."""
    spec = manifest.object_at("spec")
    if "replicas" in spec:
        yield f"replicas={spec['replicas']}"
    containers = objects_at(spec, "template", "spec", "containers")
    if images := [container["image"] for container in containers if "image" in container]:
        yield f"images={short(images)}"


def _field(name: str, value: object, separator: str = "=") -> str:
    if name.endswith("Ms") and isinstance(value, int) and _INSTANTS_FROM_MS <= value <= times.LAST_MS:
        return f"{name.removesuffix('Ms')}{separator}{times.to_seconds_text(value)}"
    return f"{name}{separator}{short(value)}"


def free_replicas(cluster: ClusterExplanation) -> str:
    """The replicas for which a cluster has free capacity; empty if that was not estimated."""
    free = cluster.allocatable
    return "" if free is None or free == UNLIMITED else str(free)


def override(ref: shapes.OverrideRef) -> str:
    """The override policy that a work refers to, as ``Kind namespace/name``."""
    return f"{ref.kind} {keys.full_name(ref.namespace, ref.name)}"


def failures(cluster: ClusterExplanation) -> list[str]:
    """Reasons why an explanation excluded a cluster; empty if it was a candidate."""
    return [*(["the cluster is being removed"] if cluster.terminating else []), *cluster.failed]


def short(value: object) -> str:
    """A value in one line: objects by name (``name:replicas``), lists in brackets.

    The other fields of an object about a cluster follow its name in parentheses.
    """
    if isinstance(value, dict):
        return _short_object(cast("Json", value))
    if isinstance(value, list):
        return f"[{', '.join(map(short, cast('list[object]', value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short_object(value: Json) -> str:
    replicas = f":{value['replicas']}" if "replicas" in value else ""
    if "name" in value:
        return f"{value['name']}{replicas}"
    if "cluster" in value:
        details = ", ".join(
            _field(name, item)
            for name, item in value.items()
            if _is_shown(name) and name not in {"cluster", "replicas"}
        )
        return f"{value['cluster']}{replicas}{details and f'({details})'}"
    return f"{{{', '.join(_field(name, item, ':') for name, item in value.items())}}}"


def spread(clusters: Mapping[str, int], separator: str) -> str:
    """Clusters in one line, each with its replicas after ``separator``; only the names if no cluster has replicas."""
    has_replicas = any(clusters.values())
    named = (f"{name}{separator}{count}" if has_replicas else name for name, count in clusters.items())
    return ", ".join(named) or "nowhere"


def group_title(group: GroupExplanation, refusal: str = "") -> str:
    """The name of an affinity group, how replicas were divided over its clusters, and why that was not applied."""
    name = f"Group {group.affinity_name}" if group.affinity_name else "Clusters"
    steps = ", ".join(map(division, group.steps))
    title = f"{name}: {steps}" if steps else name
    return f"{title}; not applied: {refusal}" if refusal else title


def refusal(explained: Explained, group: GroupExplanation) -> str:
    """The reason (a quota) why the clusters that the scheduler chose in a group were refused; empty if accepted."""
    return explained.condition if _is_kept(explained) and not group.error else ""


def division(step: Step) -> str:
    """A division of replicas in words.

    A scale-down divides all remaining replicas, a scale-up only the new ones.
    """
    if step.kind == explanations.DUPLICATED and not step.seats:
        return "the object in each cluster"
    # A server of a later release may name kinds that this one does not know.
    return _DIVISIONS.get(step.kind, f"{step.kind}, {{}}").format(count(step.seats, "replica"))


def decided(explained: Explained) -> str:
    """Time and number of a decision, and whether its object was deleted since."""
    text = f"{explained.basis.time}, at number {explained.basis.number} of the log"
    return f"{text}; the object was deleted since" if explained.is_deleted else text


def result(explained: Explained, clusters: str) -> str:
    """The clusters of a decision as text; a binding that could not be scheduled keeps those that it has."""
    return f"unchanged, {clusters}" if _is_kept(explained) else clusters


def _is_kept(explained: Explained) -> bool:
    return explained.condition not in {"", bindings.SUCCESS} and explained.clusters == explained.previous


def further_lines(explained: Explained) -> Iterator[tuple[str, str]]:
    """Lines about waiting works, a refused policy, priority and preemption in an explanation, as (heading, text)."""
    priority, preemption = explained.priority, explained.preemption
    if explained.refused:
        yield "Not applied", f"{explained.refused}; the policy is applied once that is corrected"
    if explained.former:
        yield "Waits", f"until the object of the deleted template is gone in {', '.join(explained.former)}"
    if priority is not None:
        by = f"class {priority.class_name}" if priority.class_name else "no class"
        yield "Priority", f"{priority.value} ({priority.fault or by})"
    if preemption is not None:
        where = ", ".join(preemption.clusters)
        count, at = preemption.missing, preemption.asked_at
        yield "Capacity", f"missing for {count} replicas in {where} at {at}, attempt {preemption.attempt}"
        yield from (("Preempts", line) for line in _preempts(preemption))
    elif (
        priority is not None
        and priority.preemption_policy == "Never"
        and explained.condition == "Unschedulable"
    ):
        yield "Preempts", "nothing: preemptionPolicy is Never"
    for cluster, loss in explained.preempted.items():
        until = f", excluded until {loss.until}" if loss.until else ""
        yield "Preempted", f"in {cluster} by {loss.by} at {loss.at}: {loss.replicas} replicas evicted{until}"


def _preempts(preemption: Preemption) -> Iterator[str]:
    for victim in preemption.victims:
        size = f"{victim.replicas} replicas, priority {victim.priority}"
        yield f"{victim.key} in {victim.cluster} ({size})"
    if preemption.reason:
        yield f"nothing: {NOT_PREEMPTED[preemption.reason]}"
    elif not preemption.is_answered:
        yield "undecided: some shards have not answered yet"
