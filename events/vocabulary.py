"""Values of fields of Karmada's objects that events carry, and that deciders, agents and projections check."""

from typing import Final

NO_EXECUTE: Final = "NoExecute"
"""Effect of a taint that evicts."""

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
