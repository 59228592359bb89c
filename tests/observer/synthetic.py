"""A control plane that is made up: changes of clusters and bindings in shapes that the recordings lack.

Its scheduler decides by rules that are simple enough to be written down here: all fitting clusters get all replicas
(Duplicated), or equal shares (Divided). Replicas are a multiple of all numbers of clusters, so shares have no rest.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from tests.recordings import Change, Head

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]

REPLICAS: Final = 12
BEGAN_S: Final = 1_767_225_600
_NAMES: Final = ("east", "north", "south", "west")
_SUCCESS: Final = "Binding has been scheduled successfully."
_KINDS: Final = {
    "ResourceBinding": ("apps/v1", "Deployment", "shop"),
    "ClusterResourceBinding": ("rbac.authorization.k8s.io/v1", "ClusterRole", ""),
}


class ControlPlane:
    """The objects of the control plane, its changes so far, and the decisions of its scheduler.

    ``seconds`` are the times of its decisions, one second apart by default.
    """

    def __init__(self, seconds: Iterator[int] | None = None) -> None:
        self.changes: list[Change] = []
        self.decided: list[int] = []
        """The resourceVersions of the writes that ended a decision."""
        self.clusters: dict[str, Object] = {}
        self.bindings: dict[Key, Object] = {}
        self._versions = itertools.count(2)
        self._uids = itertools.count(1)
        self._seconds = seconds or itertools.count(BEGAN_S)

    def join(self, name: str) -> None:
        """Let a cluster join that serves all kinds."""
        enabled = [
            {"groupVersion": group, "resources": [{"kind": kind}]} for group, kind, _ in _KINDS.values()
        ]
        self.clusters[name] = {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name, "uid": self._uid()},
            "spec": {"syncMode": "Push"},
            "status": {"apiEnablements": enabled},
        }
        self._put(self.clusters[name])

    def taint(self, name: str, *taints: str) -> None:
        """Set the NoSchedule taints of a cluster; that alone makes no binding due."""
        self.clusters[name]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
        self._put(self.clusters[name])

    def begin_leaving(self, name: str) -> None:
        """Mark a cluster as being deleted, and schedule what it ran."""
        self.clusters[name]["metadata"]["deletionTimestamp"] = self._now()
        self._put(self.clusters[name])
        for key, binding in list(self.bindings.items()):
            if name in _placed(binding):
                self.schedule(key)

    def leave(self, name: str) -> None:
        """Delete a cluster."""
        self._put(self.clusters.pop(name), "DELETED")

    def bind(self, kind: str, name: str, *, is_divided: bool = False, groups: Object | None = None) -> Key:
        """Make a binding, and schedule it; those of the cluster scope have no replicas and no groups."""
        group, resource, namespace = _KINDS[kind]
        type_ = "Divided" if is_divided else "Duplicated"
        of: Object = {"apiVersion": group, "kind": resource, "name": name, "uid": self._uid()}
        bound = f"{name}-{resource.lower()}"
        metadata: Object = {"name": bound, "uid": self._uid(), "generation": 0}
        binding: Object = {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": kind,
            "metadata": {**metadata, "labels": {"propagationpolicy.karmada.io/permanent-id": "an-id"}},
            "spec": {
                "resource": of,
                "placement": {"replicaScheduling": {"replicaSchedulingType": type_}},
                "schedulerName": "default-scheduler",
            },
        }
        if is_divided:
            binding["spec"]["placement"]["replicaScheduling"]["replicaDivisionPreference"] = "Weighted"
        if namespace:
            binding["metadata"]["namespace"] = of["namespace"] = namespace
            binding["spec"]["replicas"] = REPLICAS
            if groups is not None:
                binding["spec"]["workloadAffinityGroups"] = groups
        key = kind, bound
        self.bindings[key] = binding
        self._change(key)
        self.schedule(key)
        return key

    def unbind(self, key: Key) -> None:
        """Delete a binding."""
        self._put(self.bindings.pop(key), "DELETED")

    def suspend(self, key: Key, *, is_suspended: bool) -> None:
        """Suspend the scheduling of a binding, or resume it."""
        spec = self.bindings[key]["spec"]
        spec["suspension"] = {"scheduling": True} if is_suspended else {}
        self._change(key)
        self.schedule(key)

    def evict(self, key: Key, cluster: str) -> None:
        """Evict a binding from a cluster gracefully, as a taint or a failover does, and schedule it."""
        spec = self.bindings[key]["spec"]
        spec["clusters"] = [target for target in spec["clusters"] if target["name"] != cluster]
        task = {"fromCluster": cluster, "reason": "TaintUntolerated", "producer": "TaintManager"}
        spec.setdefault("gracefulEvictionTasks", []).append(task)
        self._change(key)
        self.schedule(key)

    def end_eviction(self, key: Key) -> None:
        """End the oldest eviction of a binding, and schedule it."""
        self.bindings[key]["spec"]["gracefulEvictionTasks"].pop(0)
        self._change(key)
        self.schedule(key)

    def report(self, key: Key) -> None:
        """Report on a binding's workloads, which is no reason to schedule it."""
        status = self.bindings[key].setdefault("status", {})
        status["aggregatedStatus"] = [
            {"clusterName": name, "applied": True} for name in _placed(self.bindings[key])
        ]
        self._put(self.bindings[key])

    def schedule(self, key: Key) -> None:
        """Decide on a binding, and write the decision in two steps, with a report between them."""
        binding = self.bindings[key]
        spec, status = binding["spec"], binding.setdefault("status", {})
        if spec.get("suspension", {}).get("scheduling"):
            return
        before = _placed(binding)
        annotations = binding["metadata"].setdefault("annotations", {})
        applied = msgspec.json.encode(spec["placement"]).decode()
        fitting = self._fitting(key, before)
        chosen = _divided(spec, fitting) if self._is_due(spec, before, annotations, applied) else before
        if chosen is before:
            status["schedulerObservedGeneration"] = binding["metadata"]["generation"]
            self._put(binding)
            return
        generation = binding["metadata"]["generation"]
        annotations["policy.karmada.io/applied-placement"] = applied
        spec["clusters"] = [
            {"name": name, **({"replicas": count} if count else {})} for name, count in chosen.items()
        ]
        if chosen != before:
            self._change(key)
        else:
            self._put(binding)
        self.report(key)
        is_placed = bool(fitting)
        now = self._now()
        message = _SUCCESS if is_placed else f"0/{len(self.clusters)} clusters are available: none."
        condition = {
            "type": "Scheduled",
            "status": str(is_placed),
            "reason": "Success" if is_placed else "NoClusterFit",
            "message": message,
            "lastTransitionTime": now,
        }
        status["conditions"] = [condition]
        if is_placed:
            status["schedulerObservedGeneration"] = generation
            status["lastScheduledTime"] = now
        self._put(binding)
        self.decided.append(self.changes[-1].version)

    def _is_due(self, spec: Object, before: dict[str, int], annotations: Object, applied: str) -> bool:
        is_divided = spec["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Divided"
        leaving = {
            name for name, cluster in self.clusters.items() if "deletionTimestamp" in cluster["metadata"]
        }
        return (
            not is_divided
            or annotations.get("policy.karmada.io/applied-placement") != applied
            or sum(before.values()) != spec["replicas"]
            or bool(leaving & before.keys())
        )

    def _fitting(self, key: Key, before: dict[str, int]) -> list[str]:
        evicting = [
            task["fromCluster"] for task in self.bindings[key]["spec"].get("gracefulEvictionTasks", ())
        ]
        return [
            name
            for name, cluster in sorted(self.clusters.items())
            if "deletionTimestamp" not in cluster["metadata"]
            and name not in evicting
            and (name in before or not (cluster["spec"].get("taints") or self._is_excluded(key, name)))
        ]

    def _is_excluded(self, key: Key, cluster: str) -> bool:
        """Whether another workload of one of the binding's groups excludes a cluster."""
        groups = self.bindings[key]["spec"].get("workloadAffinityGroups", {})
        for other, binding in self.bindings.items():
            if other == key or not (placed := _placed(binding)):
                continue
            shared = groups.items() & binding["spec"].get("workloadAffinityGroups", {}).items()
            if any((cluster in placed) == (field == "antiAffinityGroup") for field, _ in shared):
                return True
        return False

    def _change(self, key: Key) -> None:
        self.bindings[key]["metadata"]["generation"] += 1
        self._put(self.bindings[key])

    def _put(self, value: Object, type_: str = "MODIFIED") -> None:
        value["metadata"]["resourceVersion"] = str(next(self._versions))
        manifest = msgspec.Raw(msgspec.json.encode(value))
        self.changes.append(Change(type_, msgspec.json.decode(manifest, type=Head), manifest))

    def _uid(self) -> str:
        return f"uid-{next(self._uids)}"

    def _now(self) -> str:
        minutes, second = divmod(next(self._seconds) - BEGAN_S, 60)
        return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{second:02}Z"


def _placed(binding: Object) -> dict[str, int]:
    return {target["name"]: target.get("replicas", 0) for target in binding["spec"].get("clusters", ())}


def _divided(spec: Object, fitting: Sequence[str]) -> dict[str, int]:
    replicas: int = spec.get("replicas", 0)
    is_divided = spec["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Divided"
    return {name: replicas // len(fitting) if is_divided else replicas for name in fitting}


def played(seed: int, moves: int) -> ControlPlane:
    """Return a control plane after random moves of all sorts.

    Some workloads belong to groups (``workloadAffinityGroups``).
    """
    rng, plane = random.Random(seed), ControlPlane()  # noqa: S311  # made up, not secret
    for name in _NAMES:
        plane.join(name)
    for number in range(4):
        plane.bind("ResourceBinding", f"web{number}", is_divided=bool(number % 2), groups=_groups(rng))
        plane.bind("ClusterResourceBinding", f"role{number}")
    for number in range(moves):
        _move(rng, plane, number)
    return plane


def _groups(rng: random.Random) -> Object | None:
    fields = [field for field in ("affinityGroup", "antiAffinityGroup") if rng.random() < 0.3]
    return dict.fromkeys(fields, "app=web") or None


def _move(rng: random.Random, plane: ControlPlane, number: int) -> None:
    key = rng.choice(sorted(plane.bindings))
    spec = plane.bindings[key]["spec"]
    match rng.randrange(8):
        case 0 if absent := sorted(set(_NAMES) - plane.clusters.keys()):
            plane.join(rng.choice(absent))
        case 0 | 1:
            name = rng.choice(sorted(plane.clusters))
            is_tainted = bool(plane.clusters[name]["spec"].get("taints"))
            plane.taint(name, *(() if is_tainted else ("maintenance",)))
        case 2 if len(plane.clusters) > 1:
            name = rng.choice(sorted(plane.clusters))
            plane.begin_leaving(name)
            plane.leave(name)
        case 3 | 4 if placed := _placed(plane.bindings[key]):
            plane.evict(key, rng.choice(sorted(placed)))
        case 5 if spec.get("gracefulEvictionTasks"):
            plane.end_eviction(key)
        case 6:
            plane.suspend(key, is_suspended=not spec.get("suspension", {}).get("scheduling"))
        case 7 if len(plane.bindings) > 4:
            plane.unbind(key)
            kind = rng.choice(sorted(_KINDS))
            is_divided = kind == "ResourceBinding" and rng.random() < 0.5
            plane.bind(kind, f"new{number}", is_divided=is_divided, groups=_groups(rng))
        case _:
            plane.report(key)
