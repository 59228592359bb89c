"""Configuration of a simulated member: nodes, location, served kinds, start-up time of replicas.

It is read once; ``state`` holds what the member runs.
"""

from typing import Final

from msgspec import Struct

from events import clusters

STARTUP_MS: Final = 200
"""Time from a replica's admission until it is ready; long enough to be visible, short enough to wait for."""

RELEASE: Final = "v1.36.2"
"""The release of Kubernetes whose API members serve."""


class NodeGroup(Struct, frozen=True, kw_only=True, gc=False):
    """Equal nodes: their number, and the allocatable resources of each as Kubernetes quantities (``pods`` too)."""

    count: int
    allocatable: dict[str, str]


class MemberSpec(Struct, frozen=True, kw_only=True):
    """One simulated cluster.

    ``apis`` are the kinds that it serves, custom ones included. With ``startup_ms`` 0 a replica is ready in
    the turn of its admission.
    """

    name: str
    nodes: tuple[NodeGroup, ...]
    labels: dict[str, str] = {}
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[clusters.Taint, ...] = ()
    apis: tuple[clusters.ApiKind, ...] = ()
    startup_ms: int = STARTUP_MS


def joined_event(spec: MemberSpec) -> clusters.ClusterJoined:
    """Return the event with which a new member joins."""
    return clusters.ClusterJoined(
        name=spec.name,
        labels=spec.labels,
        provider=spec.provider,
        region=spec.region,
        zones=spec.zones,
        taints=spec.taints,
        apis=spec.apis,
        kubernetes_version=RELEASE,
    )
