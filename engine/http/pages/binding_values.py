"""Values for the pages about bindings: state, reason, and one bar for each cluster, all on one scale. No HTTP here."""

from typing import Final

from msgspec import Struct

from engine.domain import marks
from events import keys
from events.json_values import Json, at, condition, object_at, objects_at, texts

BAR_PIXELS_MAX: Final = 240


class Bar(Struct, frozen=True, kw_only=True):
    """A cluster's share of a binding.

    ``wanted`` are its assigned replicas, ``running`` the reported ones, ``ready`` the ready ones among them;
    all are None for kinds without replicas, where only ``applied`` counts. ``pending`` is wanted minus ready.
    ``leaving``: the cluster is no longer a target but still runs replicas.
    """

    cluster: str
    wanted: int | None
    running: int | None
    ready: int | None
    pending: int
    applied: bool
    leaving: bool
    wanted_pixels: int
    ready_pixels: int


class Row(Struct, frozen=True, kw_only=True):
    """A binding; ``state`` is scheduled, failed, required or waiting; ``ready`` leaves out clusters it is leaving.

    ``marks`` are short notes, such as suspensions and evictions.
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


def rows(bindings: list[Json]) -> list[Row]:
    """The rows of a page. The longest bar has ``BAR_PIXELS_MAX`` pixels; a replica has the same width in all bars."""
    widest = max((_most(binding) for binding in bindings), default=0)
    return [_row(binding, widest) for binding in bindings]


def conditions(binding: Json) -> list[Json]:
    return objects_at(binding, "status", "conditions")


def _row(binding: Json, widest: int) -> Row:
    spec = object_at(binding, "spec")
    metadata, resource = object_at(binding, "metadata"), object_at(spec, "resource")
    scheduled = condition(binding, "Scheduled")
    bars = _bars(binding, widest)
    namespace, name = str(metadata.get("namespace", "")), str(metadata["name"])
    is_scheduled = scheduled.get("status") == "True"
    return Row(
        key=keys.full_name(namespace, name),
        kind=str(resource.get("kind")),
        namespace=namespace,
        name=str(resource.get("name")),
        state=("scheduled" if is_scheduled else "failed") if scheduled else _unplaced(spec),
        reason="" if is_scheduled else str(scheduled.get("reason", "")),
        message="" if is_scheduled else str(scheduled.get("message", "")),
        replicas=_count(spec, "replicas"),
        ready=sum(bar.ready or 0 for bar in bars if not bar.leaving),
        bars=bars,
        marks=_marks(spec),
    )


def _unplaced(spec: Json) -> str:
    """The state of a binding without a scheduling result: required by another binding as its dependency, or waiting."""
    return "required" if spec.get("requiredBy") else "waiting"


def _marks(spec: Json) -> list[str]:
    suspension = object_at(spec, "suspension")
    only = texts(at(suspension, "dispatchingOnClusters", "clusterNames"))
    marks = ["suspended"] if suspension.get("dispatching") else []
    if only:
        marks.append("suspended on " + ", ".join(only))
    tasks = objects_at(spec, "gracefulEvictionTasks")
    marks += [f"leaves {task.get('fromCluster')}: {task.get('reason')}" for task in tasks]
    needs = objects_at(spec, "requiredBy")
    return marks + [f"required by {need.get('namespace')}/{need.get('name')}" for need in needs]


def _bars(binding: Json, widest: int) -> list[Bar]:
    """Bars of its assigned clusters, of clusters where it is a dependency, then of those it is leaving."""
    spec = object_at(binding, "spec")
    targets = {str(target["name"]): target for target in objects_at(spec, "clusters")}
    for need in objects_at(spec, "requiredBy"):
        for target in objects_at(need, "clusters"):
            targets.setdefault(str(target["name"]), target)
    reports = {str(target["clusterName"]): target for target in _reports(binding)}
    left = [name for name, report in reports.items() if name not in targets and _is_there(report)]
    return [_bar(name, targets.get(name), reports.get(name, {}), widest) for name in (*targets, *left)]


def _bar(name: str, target: Json | None, report: Json, widest: int) -> Bar:
    numbers = object_at(report, "status")
    desired = _count(target or {}, "replicas") if target is not None else 0
    running, ready = _count(numbers, "replicas"), _count(numbers, "readyReplicas")
    return Bar(
        cluster=name,
        wanted=desired,
        running=running,
        ready=ready,
        pending=max((desired or 0) - (ready or 0), 0),
        applied=bool(report.get("applied")),
        leaving=target is None,
        wanted_pixels=_pixels(max(desired or 0, running or 0), widest),
        ready_pixels=_pixels(ready or 0, widest),
    )


def _is_there(report: Json) -> bool:
    """Whether the cluster still reports replicas."""
    return bool(_count(object_at(report, "status"), "replicas"))


def _most(binding: Json) -> int:
    desired = (_count(each, "replicas") or 0 for each in objects_at(binding, "spec", "clusters"))
    running = (_count(object_at(each, "status"), "replicas") or 0 for each in _reports(binding))
    return max((*desired, *running), default=0)


def _pixels(count: int, widest: int) -> int:
    """The width of ``count`` replicas; at least 2 pixels unless it is 0."""
    return max(BAR_PIXELS_MAX * count // max(widest, 1), 2) if count else 0


def _reports(binding: Json) -> list[Json]:
    return objects_at(binding, "status", "aggregatedStatus")


def _count(fields: Json, name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) else None


def policy(binding: Json) -> str:
    """The policy that claims a binding, as ``PropagationPolicy default/nginx``; empty if there is none."""
    claim = marks.claiming_policy(object_at(binding, "metadata", "annotations"))
    if claim is None:
        return ""
    return f"{claim.kind} {claim.namespace}/{claim.name}" if claim.namespace else f"{claim.kind} {claim.name}"
