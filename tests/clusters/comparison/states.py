"""What a control plane has made of a scenario, without what has to differ between two control planes."""

import json
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

from events.json_values import Json
from tests.builders.manifests import POLICIES, REBALANCERS
from tests.clusters.comparison import fleet
from tests.clusters.comparison.planes import Plane

State = dict[str, Json]
"""Bindings, Works, quotas, rebalancers, the marks of templates, and the taints of all clusters, by path."""

_SEED: Final = re.compile(r"compared-(\d+)")
_MARKED: Final = ("Deployment", "ConfigMap")
_Ref = tuple[str, str, str]
"""Kind, namespace and name of a template."""

_Entry = tuple[str, str, object]
"""Owner (a namespace, or a name that begins with one), path and value of a part of a state."""

_WRAPPED: Final = "available replicas -"
"""In messages of Karmada's scheduler if a sum of free replicas exceeds its 32 bits: it then schedules nothing."""

_PERMANENT_ID: Final = "propagationpolicy.karmada.io/permanent-id"
_QUOTA_NAME: Final = "federatedresourcequota.karmada.io/name"
_TEMPLATES: Final = {
    "ConfigMap": "/api/v1/configmaps",
    "CronJob": "/apis/batch/v1/cronjobs",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/horizontalpodautoscalers",
    "Ingress": "/apis/networking.k8s.io/v1/ingresses",
    "Job": "/apis/batch/v1/jobs",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "Pod": "/api/v1/pods",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "Service": "/api/v1/services",
    "StatefulSet": "/apis/apps/v1/statefulsets",
}
"""Lists of templates by kind."""

_COMPLETE: Final = "complete/"
"""Prefix of paths of states that are compared only if all clusters of a binding have reported on both sides."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OWN: Final = frozenset(
    {
        *("uid", "creationTimestamp", "resourceVersion", "managedFields", "generation", "lastTransitionTime"),
        *("lastScheduledTime", "schedulerObservedGeneration", "finalizers"),
    }
)
"""Fields that differ between any two control planes, or that depend on when a controller came by."""

_TIMES: Final = frozenset({"rescheduleTriggeredAt", "finishTime"})
"""Times of which only the presence is compared."""

EXPECTED: Final = (
    # Display only: Reballast shows no defaults in manifests of Works, and writes amounts and generations otherwise.
    r"replicaRequirements\.resourceRequest\.",
    r"resourcetemplate\.karmada\.io/(generation|managed-)",
    r"manifests\[0\]\.(spec\..*|preemptionPolicy): only Karmada",
    r"manifests\[0\]\.metadata\.(annotations\.deprecated\.daemonset|labels\.([\w.]*/)?(controller-uid|job-name|pod)\b)",
    # Karmada does not copy the generation that the status of a StatefulSet describes; it copies whole statuses of pods.
    r"\.reports\.p\d\.status\.(observedGeneration: only Reballast|conditions|containerStatuses|qosClass)",
    # Karmada shows neither the generation of these statuses nor, before all clusters have reported it, a Job's start.
    r"\.complete/.*\.(observedGeneration|startTime): only Reballast",
    # Kubernetes counts changes of annotations of Deployments as generations, too. Karmada aggregates between reports
    # of the same step, and keeps the generation that all clusters had observed at that moment.
    r"(observedGeneration|resourceTemplateGeneration): (Karmada has \d, Reballast \d|only Karmada has \d)",
    # Karmada sets these only when it creates a ClusterResourceBinding.
    r"clusterresourcebindings/.*\.spec\.(propagateDeps|schedulePriority)",
    # Reballast adds to a binding whether it may preempt others.
    r"schedulePriority\.preemptionPolicy: only Reballast",
    # Karmada leaves out resources that no workload uses any longer.
    r"overallUsed(: only Reballast has \{|\.\S+: only Reballast has )[^{}]*.0.\}?$",
    # Karmada shows a claim that its cluster refuses as bound.
    r"persistentvolumeclaim.*\.phase: Karmada has .Bound., Reballast .Pending",
    # The API server adds these, to namespaces also in the clusters.
    r"\.ipMode: only Karmada",
    r"\.labels\.kubernetes\.io/metadata\.name: only Karmada",
    # Each API server draws these.
    r"\.nodePort: Karmada has \d+, Reballast \d+$",
    # Reballast shows that a binding has no dependencies even if its kind cannot have any, or it is not scheduled.
    r"resourcebinding\.karmada\.io/dependencies: (only Karmada|.*Reballast (has )?\"null\")",
    r"Karmada has .wrapped",
    # The condition Scheduled of a binding without a policy and without clusters is False in Reballast.
    r"Reballast .False Unclaimed",
    # Karmada does not remove annotations of overrides and dependencies that no longer apply, nor in Works the marks of
    # deleted policies.
    r"applied-(cluster-)?overrides: only Karmada",
    r"manifests\[0\]\.metadata\.(labels|annotations)\.(cluster)?propagationpolicy",
)
"""Paths of differences that are known, as regular expressions."""

_EXPECTED: Final = re.compile("|".join(EXPECTED))


def seed_of(owner: str) -> int | None:
    """Return the seed of the scenario that a namespace belongs to, or an object without one by its name."""
    match = _SEED.match(owner)
    return int(match[1]) if match is not None else None


async def read(plane: Plane) -> dict[int, State]:
    """Return the states of all scenarios, by seed."""
    states: dict[int, State] = {}
    bindings = [
        (kind, item)
        for kind in ("resourcebindings", "clusterresourcebindings")
        for item in await plane.items(f"/apis/work.karmada.io/v1alpha2/{kind}")
        if _has_policy(item) or _is_placed(item["spec"])
    ]
    claimed = {_ref(item["spec"]["resource"]) for _, item in bindings if _has_policy(item)}
    required = {_ref(item["spec"]["resource"]) for _, item in bindings if item["spec"].get("requiredBy")}
    for part in (
        await _of_templates(plane, bindings),
        await _of_rebalancers(plane, claimed),
        await _of_works(plane, claimed | required),
        await _of_quotas(plane),
    ):
        for owner, path, value in part:
            if (seed := seed_of(owner)) is not None:
                states.setdefault(seed, {})[path] = cast("Json", _comparable(value))
    # A leaving cluster that Karmada still shows may have left Reballast already.
    taints = {
        item["metadata"]["name"]: _taints(item)
        for item in await plane.items(fleet.CLUSTERS)
        if "deletionTimestamp" not in item["metadata"]
    }
    for state in states.values():
        state["taints"] = cast("Json", _comparable(taints))
    return states


def _taints(cluster: dict[str, Any]) -> Json:
    """Return the values of a cluster's taints, by key and effect."""
    return {
        f"{taint['key']}:{taint['effect']}": taint.get("value", "set")
        for taint in cluster["spec"].get("taints", ())
    }


def _ref(resource: dict[str, Any]) -> _Ref:
    """Return what identifies a template, from its own fields or those of a reference to it."""
    return resource["kind"], resource.get("namespace", ""), resource["name"]


def _has_policy(binding: dict[str, Any]) -> bool:
    return any(name.endswith(_PERMANENT_ID) for name in binding["metadata"].get("labels", {}))


def _is_placed(spec: dict[str, Any]) -> bool:
    """Whether a binding has clusters; Karmada makes bindings of dependencies for workloads without clusters, too."""
    return any(part.get("clusters") for part in (spec, *spec.get("requiredBy", ())))


async def _of_templates(plane: Plane, bindings: list[tuple[str, dict[str, Any]]]) -> list[_Entry]:
    """Return the marks of templates, and their bindings."""
    entries: list[_Entry] = []
    statuses: dict[_Ref, Json] = {}
    for kind, path in _TEMPLATES.items():
        for item in await plane.items(path):
            metadata = item["metadata"]
            statuses[kind, metadata.get("namespace", ""), metadata["name"]] = item.get("status", {})
            marks = [metadata.get("labels"), metadata.get("annotations")]
            if kind in _MARKED and metadata["name"] != "kube-root-ca.crt":
                entries.append((metadata["namespace"], f"{kind}/{metadata['name']}", marks))
    for kind, item in bindings:
        if not _has_policy(item):
            # When clusters change, Karmada also schedules some of these; Reballast never does.
            for name in ("rescheduleTriggeredAt", "clusters"):
                item["spec"].pop(name, None)
        entries.extend(_of_binding(kind, item, statuses.get(_ref(item["spec"]["resource"]))))
    return entries


async def _of_rebalancers(plane: Plane, claimed: AbstractSet[_Ref]) -> list[_Entry]:
    """Return rebalancers with the results of the templates that a policy claims.

    Karmada reports that it has rescheduled templates without a policy, although it does not.
    """
    entries: list[_Entry] = []
    for item in await plane.items(f"/apis/{REBALANCERS}/workloadrebalancers"):
        name, status = item["metadata"]["name"], item.get("status", {})
        observed = status.pop("observedWorkloads", [])
        results = [result for result in observed if _ref(result["workload"]) in claimed]
        entries.append((name, f"rebalancers/{name}", [item["spec"], status, results]))
    return entries


def _of_binding(kind: str, item: dict[str, Any], status: Json | None) -> Iterator[_Entry]:
    """Yield a binding, and once all its clusters have reported, the status of its template."""
    metadata, spec = item["metadata"], item["spec"]
    owner = metadata.get("namespace", metadata["name"])
    spec["clusters"] = sorted(spec.get("clusters", ()), key=lambda target: target["name"])
    # If several clusters get a taint at once, the order of their tasks depends on when a controller came by.
    tasks = sorted(spec.get("gracefulEvictionTasks", ()), key=lambda task: task["fromCluster"])
    spec["gracefulEvictionTasks"] = tasks
    conditions = {
        condition["type"]: f"{condition['status']} {condition['reason']}"
        for condition in item.get("status", {}).get("conditions", ())
    }
    targets = {target["name"] for target in spec["clusters"]}
    aggregated = {
        report["clusterName"]: report for report in item.get("status", {}).get("aggregatedStatus", ())
    }
    # Karmada keeps the reports of clusters that the binding has left.
    reports = {
        name: report
        for name, report in aggregated.items()
        if name in targets and (report.get("applied") or report.get("appliedMessage"))
    }
    scheduled = conditions.get("Scheduled")
    if _WRAPPED in str(item.get("status")):
        scheduled = "wrapped"
    shown = {"metadata": metadata, "spec": spec, "scheduled": scheduled, "reports": reports}
    yield owner, f"{kind}/{metadata['name']}", shown
    if targets and aggregated.keys() == targets == reports.keys():
        yield owner, f"{_COMPLETE}{metadata['name']}", [conditions["FullyApplied"], status]


async def _of_works(plane: Plane, dispatched: AbstractSet[_Ref]) -> list[_Entry]:
    """Return the Works of namespaces and quotas, and of templates that a policy claims or another binding requires.

    Karmada applies later override policies to the Works of other templates too, Reballast does not.
    """
    entries: list[_Entry] = []
    for item in await plane.works():
        metadata, manifest = item["metadata"], item["spec"]["workload"]["manifests"][0]
        target = manifest["metadata"]
        is_quota = _QUOTA_NAME in metadata.get("labels", {})
        if (
            manifest["kind"] == "Namespace"
            or is_quota
            or _ref({**target, "kind": manifest["kind"]}) in dispatched
        ):
            shown = {"metadata": metadata, "spec": item["spec"]}
            path = f"{metadata['namespace']}/{metadata['name']}"
            entries.append((target.get("namespace", target["name"]), path, shown))
    return entries


async def _of_quotas(plane: Plane) -> list[_Entry]:
    return [
        (
            item["metadata"]["namespace"],
            f"quotas/{item['metadata']['name']}",
            [item["spec"], item.get("status")],
        )
        for item in await plane.items(f"/apis/{POLICIES}/federatedresourcequotas")
    ]


def differences(karmada: State, reballast: State) -> list[str]:
    """Return what differs between the states of a scenario and is not ``EXPECTED``."""
    left_out = {path for path in karmada.keys() ^ reballast.keys() if path.startswith(_COMPLETE)}
    sides = ({path: side[path] for path in side.keys() - left_out} for side in (karmada, reballast))
    return [text for text in _differences("", *sides) if not _EXPECTED.search(text)]


def awaits_report(karmada: State, reballast: State) -> bool:
    """Whether only Reballast keeps an eviction: it waits for reports on the newest Works, Karmada for any reports."""

    def evictions(state: State) -> int:
        return sum(len(_tasks(value)) for path, value in state.items() if "bindings/" in path)

    return evictions(reballast) > evictions(karmada)


def has_recovered(karmada: State, reballast: State) -> bool:
    """Whether only Karmada keeps the eviction of a last running copy, which is healthy in Reballast again."""
    return any(
        evicted == {target["name"] for target in cast("Any", reballast[path])["spec"].get("clusters", [])}
        for path, value in karmada.items()
        if "bindings/" in path and path in reballast and not cast("Any", value)["spec"].get("clusters")
        if (evicted := {task["fromCluster"] for task in _tasks(value)}) and not _tasks(reballast[path])
    )


def _tasks(binding: Json) -> list[dict[str, Any]]:
    return cast("Any", binding)["spec"].get("gracefulEvictionTasks", [])


def repeats_failover(karmada: State, texts: Sequence[str]) -> bool:
    """Whether all differences are of workloads that Karmada evicts again and again, since it never divides them."""

    def is_repeated(spec: dict[str, Any]) -> bool:
        division = spec.get("placement", {}).get("replicaScheduling", {})
        is_divided = "replicas" in spec and division.get("replicaSchedulingType") == "Divided"
        return "application" in spec.get("failover", {}) and not is_divided

    specs = [cast("Any", value)["spec"] for path, value in karmada.items() if "bindings/" in path]
    names = [f"/{spec['resource']['name']}-" for spec in specs if is_repeated(spec)]
    return all(any(name in text for name in names) for text in texts)


def is_tie(karmada: State, reballast: State) -> bool:
    """Whether a division gives the same shares to other clusters: Karmada draws lots between equal clusters."""

    def shares(value: Json) -> list[int]:
        targets = cast("Any", value)["spec"].get("clusters", [])
        return sorted(target.get("replicas", 0) for target in targets)

    return any(
        path in reballast
        and value.get("spec") != reballast[path].get("spec")
        and any(shares(value))
        and shares(value) == shares(reballast[path])
        for path, value in karmada.items()
        if "bindings/" in path
    )


def _comparable(value: object) -> object:
    """Return a value without ids, times and empty fields (false and 0 too); JSON in texts is parsed."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        parts = {
            name: "a time" if name in _TIMES else _comparable(part)
            for name, part in fields.items()
            if name not in _OWN
        }
        return {name: part for name, part in parts.items() if part}
    if isinstance(value, list):
        return [_comparable(part) for part in cast("list[object]", value)]
    if not isinstance(value, str):
        return value
    text = _SEED.sub("compared", _UUID.sub("uuid", value))
    if text.startswith(("{", "[{")):
        try:
            return _comparable(json.loads(text))
        except ValueError:
            return text
    return text


def _differences(path: str, karmada: object, reballast: object) -> Iterator[str]:
    if isinstance(karmada, dict) and isinstance(reballast, dict):
        left, right = cast("Json", karmada), cast("Json", reballast)
        for name in sorted(left.keys() | right.keys()):
            inner = f"{path}.{name}"
            if name not in right:
                yield f"{inner}: only Karmada has {json.dumps(left[name])}"
            elif name not in left:
                yield f"{inner}: only Reballast has {json.dumps(right[name])}"
            else:
                yield from _differences(inner, left[name], right[name])
    elif isinstance(karmada, list) and isinstance(reballast, list) and len(karmada) == len(reballast):  # pyright: ignore[reportUnknownArgumentType]
        for index, pair in enumerate(
            zip(cast("list[object]", karmada), cast("list[object]", reballast), strict=True)
        ):
            yield from _differences(f"{path}[{index}]", *pair)
    elif karmada != reballast:
        yield f"{path}: Karmada has {json.dumps(karmada)}, Reballast {json.dumps(reballast)}"
