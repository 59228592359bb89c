"""Columns and rows of tables, by kind: pure functions of objects.

Templates have a row for each cluster, in karmadactl's columns; other kinds have kubectl's columns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.cli import next_commands, output
from engine.kubeapi.tables.columns.cells import NONE, Column, joined, text, text_at, wide
from engine.kubeapi.values import ages
from engine.objects import bindings, clusters
from engine.objects.bindings import Binding
from engine.objects.placements import SchedulingType
from events import times
from events.json_values import Json, as_text, at, objects_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds

Row = tuple[output.Cell, ...]
_ENGINE: Final = "karmada.io"


class Listing(NamedTuple):
    """A table. ``wide`` are the additional columns of the wide form; rows have cells for all columns.

    ``notes`` are shown below the table. ``namespace`` is set if the table lists one namespace only.
    """

    columns: tuple[str, ...]
    wide: tuple[str, ...]
    rows: list[Row]
    notes: Sequence[str] = ()
    namespace: str = ""


class Run(NamedTuple):
    """A template's replicas in one cluster; ``since_ms`` is when they were created there.

    Only for Jobs: ``finished`` is how the Job ended, ``succeeded`` is the number of pods that succeeded.
    """

    cluster: str
    replicas: int
    ready: int
    updated: int
    available: int
    adopted: bool
    since_ms: int | None
    finished: str = ""
    succeeded: int = 0


def runs(binding: Binding, since_ms: Mapping[str, int]) -> list[Run]:
    """A template's replicas in each cluster. Before a cluster's first report, none of them is shown as ready."""
    own = {target.name: target.replicas or 0 for target in binding.spec.clusters}
    desired = {name: own.get(name, 0) for name in binding.targets}
    by_cluster: dict[str, Run] = {
        cluster: Run(cluster, count, 0, 0, 0, adopted=False, since_ms=since_ms.get(cluster))
        for cluster, count in desired.items()
    }
    for report in binding.status.aggregated_status:
        cluster = report.cluster_name
        if not report.applied and cluster not in desired:
            continue
        by_cluster[cluster] = Run(
            cluster,
            desired.get(cluster, report.count("replicas") or 0),
            report.ready or 0,
            report.count("updatedReplicas") or 0,
            report.count("availableReplicas") or 0,
            adopted=report.applied,
            since_ms=since_ms.get(cluster),
            finished=report.finished,
            succeeded=report.count("succeeded") or 0,
        )
    return [by_cluster[cluster] for cluster in sorted(by_cluster)]


def template_listing(
    kind: str, templates: Sequence[tuple[KubeObject, list[Run], Binding | None]], now_ms: int
) -> Listing:
    """The table of templates, with a row per cluster; a template in no cluster has one row."""
    counted, counts = _COUNTED.get(kind, ((), lambda _run: ()))
    columns = ("NAME", "CLUSTER", *counted, "AGE", "ADOPTION")
    rows: list[Row] = []
    for template, ran, binding in templates:
        metadata = msgspec.convert(template.metadata, bindings.Metadata)
        wide = (_policies(binding), *_containers(template), label_text(metadata.labels))
        replicas = template.at("spec", "replicas")
        # In a custom kind the field may be anything.
        desired = replicas if isinstance(replicas, int) else 1
        nowhere = Run(NONE, desired, 0, 0, 0, adopted=False, since_ms=None)
        for run in ran or [nowhere]:
            age = ages.since(metadata.creation_timestamp, now_ms)
            if run.since_ms is not None:
                age = age_text(run.since_ms, now_ms)
            rows.append((metadata.name, run.cluster, *counts(run), age, "Y" if run.adopted else "N", *wide))
    notes = [note for _, _, binding in templates if binding and (note := _unscheduled(binding))]
    return Listing(columns, ("POLICY", "CONTAINERS", "IMAGES", "LABELS"), rows, output.shortened(notes))


def _unscheduled(binding: Binding) -> str:
    """A note that the replicas shown are not those requested; empty if the last scheduling pass succeeded."""
    condition, template = binding.status.condition("Scheduled"), binding.spec.resource
    if condition.status != "False":
        return ""
    namespace = next_commands.namespace(template.namespace)
    return next_commands.hint(
        f"{template.name} is not scheduled as requested: {condition.reason}; see",
        f"explain {template.kind.lower()} {template.name}{namespace}",
        "--as-of",
    )


def label_text(labels: Mapping[str, str]) -> str:
    """Labels in a cell, ``app=web,tier=gold``, without those of the engine."""
    own = sorted(name for name in labels if not name.partition("/")[0].endswith(_ENGINE))
    return ",".join(f"{name}={labels[name]}" for name in own) or NONE


def _policies(binding: Binding | None) -> str:
    names = (f"{scope}propagationpolicy.karmada.io/name" for scope in ("", "cluster"))
    marks = binding.metadata.annotations if binding else {}
    return ",".join(marks[name] for name in names if name in marks) or NONE


def _containers(template: KubeObject) -> Row:
    """Names and images of the containers."""
    pod = template.object_at("spec", "template", "spec")
    pod = pod or template.object_at("spec", "jobTemplate", "spec", "template", "spec")
    containers = objects_at(pod, "containers")
    return (
        ",".join(str(container.get("name", "")) for container in containers) or NONE,
        ",".join(str(container.get("image", "")) for container in containers) or NONE,
    )


def listing(kind: kinds.Kind, objects: Sequence[KubeObject], now_ms: int) -> Listing:
    """The table of objects that are not templates: the columns of the Kubernetes API, and more for some kinds."""
    from engine.kubeapi.tables import tables  # noqa: PLC0415  # templates do not need it, and it loads slowly

    all_columns = (*tables.columns_of_kind(kind.group, kind.kind), *_MORE_COLUMNS.get(kind.kind, ()))
    # The age stays the last column of the narrow form.
    columns = sorted(all_columns, key=lambda column: (column.priority, column.name.upper() == "AGE"))
    names = tuple(column.name.upper() for column in columns)
    count = sum(1 for column in columns if not column.priority)
    rows: list[Row] = [
        tuple(NONE if (cell := column.reading(value, now_ms)) is None else str(cell) for column in columns)
        for value in objects
    ]
    return Listing(names[:count], names[count:], rows)


def with_namespaces(table: Listing, objects: Sequence[KubeObject]) -> Listing:
    """The table with a first column NAMESPACE; ``objects`` has one object per row."""
    rows = [(value.namespace, *row) for row, value in zip(table.rows, objects, strict=True)]
    return table._replace(columns=("NAMESPACE", *table.columns), rows=rows)


def age_text(since_ms: int, now_ms: int) -> str:
    """Age as kubectl prints it: 57s, 3m14s, 12m, 3h20m; 0s for an instant in the future."""
    return ages.duration(max(now_ms - since_ms, 0) // times.SECOND_MS)


def spread(binding: Binding) -> str:
    """The assigned clusters with replicas, ``member1:2, member2:1``.

    They are followed by clusters that need the object only as a dependency of other workloads.
    """
    own = {target.name: target.replicas for target in binding.spec.clusters}
    texts = [name if count is None else f"{name}:{count}" for name, count in own.items()]
    return ", ".join(texts + sorted(binding.targets.keys() - own.keys()))


def _taints(value: KubeObject, _now_ms: int) -> str:
    taints = msgspec.convert(value.list_at("spec", "taints"), list[clusters.Taint])
    return joined(taint.text for taint in taints)


def _clusters_of_binding(value: KubeObject, _now_ms: int) -> str:
    return spread(bindings.of(value)) or NONE


def _selected(value: KubeObject, _now_ms: int) -> str:
    selectors = (KubeObject(item) for item in value.objects_at("spec", "resourceSelectors"))
    return joined("/".join(filter(None, (item.kind, item.text_at("name")))) for item in selectors)


def _clusters_of_policy(value: KubeObject, _now_ms: int) -> str:
    names = value.list_at("spec", "placement", "clusterAffinity", "clusterNames")
    groups = value.objects_at("spec", "placement", "clusterAffinities")
    return joined(names or [as_text(group.get("affinityName")) for group in groups], "<any>")


def _successful(value: KubeObject, _now_ms: int) -> str:
    observed = value.objects_at("status", "observedWorkloads")
    done = sum(workload.get("result") == "Successful" for workload in observed)
    return f"{done}/{len(observed)}"


_OF_BINDINGS: Final = wide(text("CLUSTERS", _clusters_of_binding))
_SCHEDULING_TYPE: Final = text_at(
    "spec.placement.replicaScheduling.replicaSchedulingType", SchedulingType.DUPLICATED
)
_OF_POLICIES: Final = wide(
    text("SELECTS", _selected), text("CLUSTERS", _clusters_of_policy), text("REPLICAS", _SCHEDULING_TYPE)
)
_MORE_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Cluster": (text("TAINTS", _taints),),
    "ResourceBinding": _OF_BINDINGS,
    "ClusterResourceBinding": _OF_BINDINGS,
    "PropagationPolicy": _OF_POLICIES,
    "ClusterPropagationPolicy": _OF_POLICIES,
    "WorkloadRebalancer": (
        text("SUCCESSFUL", _successful),
        text("FINISHED", text_at("status.finishTime", NONE)),
    ),
    "ReplicaInterpreter": (
        text("KIND", text_at("spec.target.kind")),
        text("REPLICAS-PATH", text_at("spec.replicasPath", NONE)),
    ),
}
"""Columns that the Kubernetes API does not have, by kind."""


_COUNTED: Final[dict[str, tuple[tuple[str, ...], Callable[[Run], Row]]]] = {
    "Deployment": (
        ("READY", "UP-TO-DATE", "AVAILABLE"),
        lambda run: (f"{run.ready}/{run.replicas}", run.updated, run.available),
    ),
    "Job": (
        ("STATUS", "ACTIVE", "SUCCEEDED"),
        lambda run: (run.finished or ("Running" if run.adopted else NONE), run.ready, run.succeeded),
    ),
    **dict.fromkeys(
        ("StatefulSet", "ReplicaSet"), (("READY",), lambda run: (f"{run.ready}/{run.replicas}",))
    ),
}


def show_table(table: Listing, *, wide: bool, has_heading: bool = True) -> None:
    """Print a table, with its wide columns and its heading if requested; prints a note if it is empty."""
    if not table.rows:
        output.warn(f"No resources found{table.namespace and f' in {table.namespace} namespace'}.")
        return
    columns = (*table.columns, *table.wide) if wide else table.columns
    rows = [row[: len(columns)] for row in table.rows]
    if has_heading:
        output.table(columns, rows)
    else:
        output.rows(columns, rows, range(len(rows)))
    for note in table.notes:
        output.warn(note)


def show_whole(documents: list[Json], *, form: str, single: bool) -> None:
    """Print whole objects: a single one as it is, several as a List."""
    if form == "name":
        for document in documents:
            api_version, kind = as_text(document.get("apiVersion")), as_text(document.get("kind"))
            resource = kinds.Kind(api_version=api_version, kind=kind, plural="").resource
            output.print_line(output.clean(f"{resource}/{as_text(at(document, 'metadata', 'name'))}"))
        return
    value = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    (output.json if form == "json" else output.yaml)(value)
