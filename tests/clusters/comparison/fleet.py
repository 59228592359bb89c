"""Clusters that exist only as objects: the comparison writes their statuses, and no agent works in them."""

from typing import Final

from msgspec import Struct

from events.json_values import Json
from tests.builders import manifests
from tests.clusters.comparison import custom_kinds

CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
LEASES: Final = "karmada-cluster"
"""Namespace of the Leases that agents renew."""

_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_CORE: Final = (
    *("ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "PersistentVolumeClaim"),
    *("PersistentVolume", "LimitRange", "ResourceQuota"),
)
_SERVED: Final = {
    "v1": _CORE,
    "apps/v1": _WORKLOADS,
    "policy/v1": ("PodDisruptionBudget",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "rbac.authorization.k8s.io/v1": ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"),
    "networking.k8s.io/v1": ("Ingress", "NetworkPolicy"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "batch/v1": ("Job", "CronJob"),
    custom_kinds.DEFINITION[0]: (custom_kinds.DEFINITION[1],),
    **{api_version: tuple(kinds) for api_version, kinds in custom_kinds.by_api_version().items()},
}
_SINCE: Final = "2026-01-01T00:00:00Z"


class Cluster(Struct, frozen=True):
    """A cluster's labels and fields of its spec, and what its nodes have and have given away."""

    name: str
    labels: dict[str, str]
    spec: Json
    allocatable: dict[str, str]
    allocated: dict[str, str]
    nodes_by_grade: dict[int, int] = {}
    serves_jobs: bool = True

    def manifest(self) -> Json:
        """Return the Cluster as an administrator registers it."""
        value = manifests.cluster(self.name, **self.spec)
        return {**value, "metadata": {"name": self.name, "labels": self.labels}}

    def status(self) -> Json:
        """Return the status that the cluster's agent would report."""
        return {
            "kubernetesVersion": "v1.35.0",
            "conditions": conditions(Ready="True"),
            "apiEnablements": enablements(self.serves_jobs),
            "nodeSummary": {"totalNum": 3, "readyNum": 3},
            "resourceSummary": {
                **self._nodes(),
                "allocatable": self.allocatable,
                "allocated": self.allocated,
            },
        }

    def _nodes(self) -> Json:
        """Return the numbers of nodes by the grade of what they have free, which an agent may or may not report."""
        models = [{"grade": grade, "count": count} for grade, count in self.nodes_by_grade.items()]
        return {"allocatableModelings": models} if models else {}


def enablements(serves_jobs: bool) -> list[Json]:
    """Return the APIs of a cluster, with or without that of Jobs."""
    return [
        {
            "groupVersion": group_version,
            "resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in kinds],
        }
        for group_version, kinds in _SERVED.items()
        if serves_jobs or group_version != "batch/v1"
    ]


def conditions(**statuses: str) -> list[Json]:
    """Return the conditions of a cluster whose agent knows all APIs, with other statuses by type."""
    return [
        {"type": kind, "status": status, "reason": kind, "message": "ok", "lastTransitionTime": _SINCE}
        for kind, status in {"CompleteAPIEnablements": "True", **statuses}.items()
    ]


def _amounts(cpu: str, memory: str, pods: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory, "pods": pods}


_TAINT: Final[Json] = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}

FLEET: Final = (
    Cluster(
        "p1",
        {"env": "a", "tier": "1"},
        {"region": "r1", "provider": "x", "zones": ["z1"]},
        _amounts("10", "20Gi", "110"),
        _amounts("1", "1Gi", "10"),
    ),
    Cluster(
        "p2",
        {"env": "b", "tier": "1"},
        {"region": "r1", "provider": "x", "zones": ["z2"]},
        _amounts("20", "40Gi", "110"),
        _amounts("2", "2Gi", "12"),
        {0: 1, 1: 4, 3: 1},
    ),
    Cluster(
        "p3",
        {"env": "a"},
        {"region": "r2", "provider": "y", "zones": ["z3"], "taints": [_TAINT]},
        _amounts("8", "16Gi", "60"),
        _amounts("1", "1Gi", "5"),
    ),
    Cluster(
        "p4",
        {"env": "b", "tier": "2"},
        {"region": "r2", "provider": "y", "zones": ["z3", "z4"]},
        _amounts("16", "32Gi", "80"),
        _amounts("7", "9Gi", "33"),
    ),
    Cluster(
        "p5",
        {"env": "a", "tier": "2"},
        {"region": "r3", "provider": "y"},
        _amounts("4", "8Gi", "30"),
        _amounts("1", "1Gi", "7"),
    ),
    Cluster(
        "p6",
        {"env": "c"},
        {"zones": ["z9"]},
        _amounts("6", "64Gi", "40"),
        _amounts("0", "0", "0"),
        serves_jobs=False,
    ),
)
"""Clusters with and without regions, zones, providers, taints and the API of Jobs."""

NAMES: Final = tuple(cluster.name for cluster in FLEET)


def of(name: str) -> Cluster:
    """Return the cluster of a name."""
    return FLEET[NAMES.index(name)]
