"""Fields that a read of a built-in kind adds or leaves out, from the published API: initial status, generation."""

from collections.abc import Mapping
from typing import Final

from events.json_values import Json
from events.kube_objects import KubeObject

_BALANCED: Final[Json] = {"loadBalancer": {}}
_STATUSES: Final[Mapping[tuple[str, str], Json]] = {
    ("apps/v1", "Deployment"): {},
    ("apps/v1", "ReplicaSet"): {"replicas": 0},
    ("apps/v1", "StatefulSet"): {"replicas": 0, "availableReplicas": 0},
    ("apps/v1", "DaemonSet"): {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    ("batch/v1", "Job"): {},
    ("batch/v1", "CronJob"): {},
    ("v1", "Service"): _BALANCED,
    ("networking.k8s.io/v1", "Ingress"): _BALANCED,
    ("policy/v1", "PodDisruptionBudget"): {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"desiredReplicas": 0, "currentMetrics": None},
    ("autoscaling/v1", "HorizontalPodAutoscaler"): {"currentReplicas": 0, "desiredReplicas": 0},
    **{("v1", kind): {"phase": "Pending"} for kind in ("PersistentVolume", "PersistentVolumeClaim", "Pod")},
    ("v1", "ReplicationController"): {"replicas": 0},
    ("storage.k8s.io/v1", "VolumeAttachment"): {"attached": False},
}
_WITHOUT_GENERATION: Final = frozenset(
    {
        ("v1", kind)
        for kind in (
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        )
    }
    | {
        ("rbac.authorization.k8s.io/v1", kind)
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    }
    | {
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("coordination.k8s.io/v1", "Lease"),
    }
)
_OF_ONE_GENERATION: Final = ("scheduling.k8s.io/v1", "PriorityClass")


def shown(value: KubeObject) -> KubeObject:
    """Return the object with the initial status and the ``generation`` that the API server returns for its kind."""
    kind = value.type_meta
    begun = _STATUSES.get(kind)
    if begun is not None:
        value = value.with_fields({"status": {**begun, **value.object_at("status")}})
    metadata = value.metadata
    if kind in _WITHOUT_GENERATION and "generation" in metadata:
        plain = {name: item for name, item in metadata.items() if name != "generation"}
        value = value.with_fields({"metadata": plain})
    if kind == _OF_ONE_GENERATION and metadata:
        value = value.with_metadata({"generation": 1})
    return value
