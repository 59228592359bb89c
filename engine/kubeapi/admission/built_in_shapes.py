"""Fields that a read of a built-in kind adds or leaves out, from the published API.

They are defaults, the initial status, the quality of service of a Pod, and the generation.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.values import quantity
from events import vocabulary
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject

_COMPUTED: Final = ("cpu", "memory")
"""Resources that determine the quality of service."""

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
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): {},
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): {},
    ("networking.k8s.io/v1", "ServiceCIDR"): {},
    ("resource.k8s.io/v1", "ResourceClaim"): {},
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
        ("networking.k8s.io/v1", "ServiceCIDR"),
        ("node.k8s.io/v1", "RuntimeClass"),
        ("resource.k8s.io/v1", "ResourceClaim"),
        ("resource.k8s.io/v1", "ResourceClaimTemplate"),
        ("storage.k8s.io/v1", "CSIStorageCapacity"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("storage.k8s.io/v1", "VolumeAttributesClass"),
        ("coordination.k8s.io/v1", "Lease"),
    }
)
_EVENT: Final[Json] = {
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
    **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
}
"""Fields of an Event that Kubernetes writes even if they are empty."""

_OF_ONE_GENERATION: Final = ("scheduling.k8s.io/v1", "PriorityClass")


def shown(value: KubeObject) -> KubeObject:
    """Return the object with the defaults, the initial status and the generation of its kind."""
    value = built_in_defaults.with_defaults(value)
    kind = value.type_meta
    begun = _STATUSES.get(kind)
    if begun is not None:
        computed: Json = (
            {"qosClass": quality_of_service(value.object_at("spec"))} if kind == vocabulary.POD else {}
        )
        value = value.with_fields({"status": {**begun, **computed, **value.object_at("status")}})
    if kind == ("v1", "Event"):
        value = KubeObject({**_EVENT, **value.document})
    if kind in _WITHOUT_GENERATION and "generation" in value.metadata:
        value = value.without_metadata("generation")
    if kind == _OF_ONE_GENERATION and value.metadata:
        value = value.with_metadata({"generation": 1})
    return value


def quality_of_service(pod: Json) -> str:
    """Return the QoS class for a pod's spec; pod-level resources take precedence over those of containers."""
    consumers = (*objects_at(pod, "containers"), *objects_at(pod, "initContainers"))
    requested, limited = Counter[str](), Counter[str]()
    is_limited = True
    for consumer in (pod,) if "resources" in pod else consumers:
        limits = _amounts(object_at(consumer, "resources", "limits"))
        limited.update(limits)
        # A request that is absent is as large as the limit.
        requested.update({**limits, **_amounts(object_at(consumer, "resources", "requests"))})
        is_limited = is_limited and len(limits) == len(_COMPUTED)
    if not (requested or limited):
        return "BestEffort"
    return "Guaranteed" if is_limited and requested == limited else "Burstable"


def _amounts(quantities: Json) -> dict[str, int]:
    """Return the amounts of cpu and memory that are above 0, in billionths of their units."""
    amounts = {name: quantity.nano_units_of(quantities.get(name)) or 0 for name in _COMPUTED}
    return {name: amount for name, amount in amounts.items() if amount > 0}
