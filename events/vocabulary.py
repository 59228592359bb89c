"""Values of fields of Karmada's objects that events carry, and that deciders, agents and projections check.

A kind is a pair of API version and name.
"""

from typing import Final

CRON_JOB: Final = ("batch/v1", "CronJob")
DEPLOYMENT: Final = ("apps/v1", "Deployment")
INGRESS: Final = ("networking.k8s.io/v1", "Ingress")
JOB: Final = ("batch/v1", "Job")
JOB_LABELS: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
"""Labels of a Job's pods: the Job's uid and the Job's name, each under the present and the former label name."""

NAMESPACE: Final = ("v1", "Namespace")
POD: Final = ("v1", "Pod")
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
SERVICE: Final = ("v1", "Service")

PURGE_DIRECTLY: Final = "Directly"
"""Purge mode of an eviction: the workload is removed at once."""
PURGE_GRACEFULLY: Final = "Gracefully"
"""Purge mode of an eviction: the workload is removed once its replacement is healthy."""
PURGE_NEVER: Final = "Never"
"""Purge mode of an eviction: the workload stays where it is."""

DIVIDED: Final = "Divided"
"""Replica scheduling type of a policy: the replicas are divided among the clusters."""

BINDING_KINDS: Final = frozenset({"ResourceBinding", "ClusterResourceBinding"})

SAFE_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names and encoded hashes, as Kubernetes chooses them: without vowels and look-alikes."""

EXECUTION_NAMESPACE_PREFIX: Final = "karmada-es-"
"""Prefix of the namespace of a cluster's Works; the cluster's name follows."""
