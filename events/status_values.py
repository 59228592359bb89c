"""JSON paths in the statuses of built-in kinds that members report and projections aggregate."""

from typing import Final

GENERATION_KINDS: Final = frozenset(
    {("apps/v1", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")}
)
"""Kinds for which members report two generations: the object's own, and the one that its status describes."""

PHASE: Final = ".phase"
"""Phase of a Pod, PersistentVolume or PersistentVolumeClaim."""

CONTAINERS_READY: Final = ".containerStatuses[*].ready"

ADDRESSES: Final = ".loadBalancer.ingress[*].ip"
"""IP addresses of a Service or Ingress."""

HOST_NAMES: Final = ".loadBalancer.ingress[*].hostname"
"""Host names of a Service or Ingress."""

ACTIVE: Final = ".active[*].name"
"""Names of the running Jobs of a CronJob."""

COUNTS: Final = {
    ("apps/v1", "DaemonSet"): (
        ".currentNumberScheduled",
        ".desiredNumberScheduled",
        ".numberAvailable",
        ".numberMisscheduled",
        ".numberReady",
        ".numberUnavailable",
        ".updatedNumberScheduled",
    ),
    ("apps/v1", "StatefulSet"): (".currentReplicas",),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): (".currentReplicas", ".desiredReplicas"),
    ("batch/v1", "Job"): (".active", ".failed", ".succeeded"),
    ("policy/v1", "PodDisruptionBudget"): (
        ".currentHealthy",
        ".desiredHealthy",
        ".disruptionsAllowed",
        ".expectedPods",
    ),
}
"""Paths of whole numbers, by API version and kind; projections show the sum over all members."""

LAST_SCHEDULED: Final = ".lastScheduleTime"
LAST_SUCCESSFUL: Final = ".lastSuccessfulTime"


def is_whole(api_version: str, kind: str) -> bool:
    """Whether members report the whole status of a kind's objects if the work requests no single status values."""
    return is_custom(api_version) or (api_version, kind) == ("v1", "ResourceQuota")


def is_custom(api_version: str) -> bool:
    """Whether a kind may be a custom one: its group is a domain name other than ``*.k8s.io``."""
    group = api_version.partition("/")[0]
    return "." in group and not group.endswith(".k8s.io")
