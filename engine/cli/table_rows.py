"""Columns and rows of tables, by kind: pure functions of JSON objects.

Templates have a row for each cluster, in karmadactl's columns; other kinds have kubectl's columns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from engine.cli import output
from events import times
from events.json_values import Json, object_at, objects_at

Row = tuple[object, ...]
NONE: Final = "<none>"
_ENGINE: Final = "karmada.io"


class Listing(NamedTuple):
    """A table: columns, further columns of the wide form, and rows with all of them."""

    columns: tuple[str, ...]
    wide: tuple[str, ...]
    rows: list[Row]


class Run(NamedTuple):
    """A template's replicas in one cluster; ``since_ms`` is when they were created there."""

    cluster: str
    replicas: int
    ready: int
    updated: int
    available: int
    adopted: bool
    since_ms: int | None


def binding_key(binding: Json) -> str:
    """The key of a binding: namespace and name."""
    return f"{placed(binding)}/{named(binding)}" if placed(binding) else named(binding)


def named(document: Json) -> str:
    """The object's name."""
    return str(object_at(document, "metadata").get("name", ""))


def placed(document: Json) -> str:
    """The object's namespace; empty for cluster-scoped kinds."""
    return str(object_at(document, "metadata").get("namespace", ""))


def runs(binding: Json, since_ms: Mapping[str, int]) -> list[Run]:
    """A template's runs by cluster: as reported, or zeros where it is scheduled but not reported yet."""
    desired = {
        str(target["name"]): int(str(target.get("replicas", 0)))
        for target in objects_at(binding, "spec", "clusters")
    }
    desired |= {cluster: 0 for cluster in required(binding) if cluster not in desired}
    by_cluster: dict[str, Run] = {
        cluster: Run(cluster, count, 0, 0, 0, adopted=False, since_ms=since_ms.get(cluster))
        for cluster, count in desired.items()
    }
    for report in objects_at(binding, "status", "aggregatedStatus"):
        cluster, numbers = str(report.get("clusterName", "")), object_at(report, "status")

        def number(name: str, numbers: Json = numbers) -> int:
            return int(str(numbers.get(name, 0)))

        if not report.get("applied") and cluster not in desired:
            continue
        by_cluster[cluster] = Run(
            cluster,
            desired.get(cluster, number("replicas")),
            number("readyReplicas"),
            number("updatedReplicas"),
            number("availableReplicas"),
            adopted=bool(report.get("applied")),
            since_ms=since_ms.get(cluster),
        )
    return [by_cluster[cluster] for cluster in sorted(by_cluster)]


def template_listing(
    kind: str, templates: Sequence[tuple[Json, list[Run], Json | None]], now_ms: int
) -> Listing:
    """The table of templates, with a row per cluster; a template in no cluster has one row."""
    counted = _COUNTED.get(kind)
    columns = ("NAME", "CLUSTER", *(_COUNTED_COLUMNS[counted] if counted else ()), "AGE", "ADOPTION")
    rows: list[Row] = []
    for template, ran, binding in templates:
        wide = _template_wide(template, binding)
        desired = int(str(object_at(template, "spec").get("replicas", 1)))
        nowhere = Run(NONE, desired, 0, 0, 0, adopted=False, since_ms=None)
        for run in ran or [nowhere]:
            numbers = _COUNTS[counted](run) if counted else ()
            since = run.since_ms if run.since_ms is not None else created_ms(template)
            age = output.age(now_ms - since)
            rows.append((named(template), run.cluster, *numbers, age, "Y" if run.adopted else "N", *wide))
    return Listing(columns, ("POLICY", "CONTAINERS", "IMAGES", "LABELS"), rows)


def label_text(labels: object) -> str:
    """Labels in a cell, ``app=web,tier=gold``, without those of the engine."""
    values = cast("Json", labels) if isinstance(labels, dict) else {}
    own = sorted(name for name in values if not name.partition("/")[0].endswith(_ENGINE))
    return ",".join(f"{name}={values[name]}" for name in own) or NONE


def _template_wide(template: Json, binding: Json | None) -> Row:
    """Wide columns: policy, containers, images and labels."""
    marks = object_at(binding or {}, "metadata", "annotations")
    names = [
        str(marks[f"{scope}propagationpolicy.karmada.io/name"])
        for scope in ("", "cluster")
        if f"{scope}propagationpolicy.karmada.io/name" in marks
    ]
    pod = object_at(template, "spec", "template", "spec")
    pod = pod or object_at(template, "spec", "jobTemplate", "spec", "template", "spec")
    containers = objects_at(pod, "containers")
    return (
        ",".join(names) or NONE,
        ",".join(str(container.get("name", "")) for container in containers) or NONE,
        ",".join(str(container.get("image", "")) for container in containers) or NONE,
        label_text(object_at(template, "metadata").get("labels")),
    )


def listing(kind: str, documents: Sequence[Json], now_ms: int) -> Listing:
    """The table of objects of any other kind."""
    columns, wide, show = _KINDS.get(kind, (("NAME", "AGE"), (), _plain))
    rows = [(named(document), *show(document)) for document in documents]
    at = columns.index("AGE")
    rows = [
        (*row[:at], output.age(now_ms - created_ms(document)), *row[at:])
        for row, document in zip(rows, documents, strict=True)
    ]
    return Listing(columns, wide, rows)


def with_namespaces(table: Listing, documents: Sequence[Json]) -> Listing:
    """The table with a first column NAMESPACE; ``documents`` has one object per row."""
    rows = [(placed(document), *row) for row, document in zip(table.rows, documents, strict=True)]
    return Listing(("NAMESPACE", *table.columns), table.wide, rows)


def created_ms(document: Json) -> int:
    """Creation time in milliseconds since 1970; 0 if unknown."""
    text = object_at(document, "metadata").get("creationTimestamp")
    return times.from_text(text) if isinstance(text, str) else 0


def condition(document: Json, kind: str) -> str:
    """The status of a condition; empty if the object has none of this type."""
    statuses = (entry for entry in objects_at(document, "status", "conditions") if entry.get("type") == kind)
    return next((str(entry.get("status", "")) for entry in statuses), "")


def spread(binding: Json) -> str:
    """The assigned clusters, ``member1:2, member2:1``, then those where it is a dependency."""
    own = {str(target["name"]): target for target in objects_at(binding, "spec", "clusters")}
    texts = [f"{name}:{target['replicas']}" if "replicas" in target else name for name, target in own.items()]
    return ", ".join(texts + [name for name in required(binding) if name not in own])


def required(binding: Json) -> list[str]:
    """The clusters in which other bindings depend on this one."""
    needs = objects_at(binding, "spec", "requiredBy")
    return sorted({str(target["name"]) for need in needs for target in objects_at(need, "clusters")})


def _plain(_document: Json) -> Row:
    return ()


def _cluster(document: Json) -> Row:
    spec = object_at(document, "spec")
    zones = ",".join(str(zone) for zone in cast("list[object]", spec.get("zones", [])))
    taints = ",".join(_taint(taint) for taint in objects_at(spec, "taints"))
    columns = (zones, spec.get("region"), spec.get("provider"), spec.get("apiEndpoint"), taints)
    ready = condition(document, "Ready") or "Unknown"
    return (spec.get("syncMode", "Push"), ready, *(value or NONE for value in columns))


def _taint(taint: Json) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _binding(document: Json) -> Row:
    return (condition(document, "Scheduled"), condition(document, "FullyApplied"), spread(document) or NONE)


def _policy(document: Json) -> Row:
    spec = object_at(document, "spec")
    selectors = ",".join(_selector(selector) for selector in objects_at(spec, "resourceSelectors")) or NONE
    affinity = object_at(spec, "placement", "clusterAffinity").get("clusterNames")
    groups = [str(group.get("affinityName")) for group in objects_at(spec, "placement", "clusterAffinities")]
    clusters = (
        [str(name) for name in cast("list[object]", affinity)] if isinstance(affinity, list) else groups
    )
    scheduling = object_at(spec, "placement", "replicaScheduling").get("replicaSchedulingType", "Duplicated")
    shown = (selectors, ",".join(clusters) or "<any>", scheduling)
    return (spec.get("conflictResolution", "Abort"), spec.get("priority", 0), *shown)


def _selector(selector: Json) -> str:
    """``Deployment/web``, or ``Deployment`` for a selector without a name."""
    name = selector.get("name")
    return f"{selector.get('kind')}/{name}" if name else str(selector.get("kind"))


def _rebalancer(document: Json) -> Row:
    observed = objects_at(document, "status", "observedWorkloads")
    done = sum(workload.get("result") == "Successful" for workload in observed)
    return (f"{done}/{len(observed)}", object_at(document, "status").get("finishTime", NONE))


def _namespace(document: Json) -> Row:
    return (object_at(document, "status").get("phase", "Active"),)


def _interpreter(document: Json) -> Row:
    spec = object_at(document, "spec")
    return (f"{object_at(spec, 'target').get('kind')}", spec.get("replicasPath"))


_BINDINGS: Final = (("NAME", "SCHEDULED", "FULLYAPPLIED", "AGE"), ("CLUSTERS",), _binding)
_POLICIES: Final = (
    ("NAME", "CONFLICT-RESOLUTION", "PRIORITY", "AGE"),
    ("SELECTS", "CLUSTERS", "REPLICAS"),
    _policy,
)
_KINDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Json], Row]]]] = {
    "Cluster": (
        ("NAME", "MODE", "READY", "AGE"),
        ("ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "TAINTS"),
        _cluster,
    ),
    "ResourceBinding": _BINDINGS,
    "ClusterResourceBinding": _BINDINGS,
    "PropagationPolicy": _POLICIES,
    "ClusterPropagationPolicy": _POLICIES,
    "WorkloadRebalancer": (("NAME", "AGE"), ("SUCCESSFUL", "FINISHED"), _rebalancer),
    "Namespace": (("NAME", "STATUS", "AGE"), (), _namespace),
    "ReplicaInterpreter": (("NAME", "KIND", "REPLICAS-PATH", "AGE"), (), _interpreter),
}


def _deployment_counts(run: Run) -> Row:
    return (f"{run.ready}/{run.replicas}", run.updated, run.available)


def _ready_counts(run: Run) -> Row:
    return (f"{run.ready}/{run.replicas}",)


_COUNTED: Final = {"Deployment": "deployment", "StatefulSet": "ready", "ReplicaSet": "ready", "Job": "ready"}
_COUNTED_COLUMNS: Final = {"deployment": ("READY", "UP-TO-DATE", "AVAILABLE"), "ready": ("READY",)}
_COUNTS: Final = {"deployment": _deployment_counts, "ready": _ready_counts}
