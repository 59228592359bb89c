"""Uids of the objects in a member; those of derived objects are computed from their names and creation times."""

from engine.simulation.specs import uid
from engine.simulation.state import Workload


def of_object(cluster: str, workload: Workload) -> str:
    """Return the uid of a workload's object."""
    return workload.uid or uid(cluster, workload.object_key, str(workload.created_ms))


def of_pod(cluster: str, name: str, created_ms: int) -> str:
    """Return the uid of a workload's pod."""
    return uid(cluster, name, str(created_ms))


def of_replica_set(cluster: str, owner: str, digest: str) -> str:
    """Return the uid of the ReplicaSet of a Deployment, by the Deployment's key and the digest of its template."""
    return uid(cluster, owner, "replicaset", digest)
