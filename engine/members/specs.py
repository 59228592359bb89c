"""What a simulated member is: its nodes, where it stands, what it serves, how fast its replicas start.

This is configuration, read once; what the member runs is its ``state``.
"""

from typing import Final

from msgspec import Struct

from events import clusters

STARTUP_MS: Final = 200
"""Time from a replica's admission to its being ready: long enough to be seen, short enough to wait for."""

RELEASE: Final = "v1.36.2"
"""The release of Kubernetes whose API members serve."""


class NodeGroup(Struct, frozen=True, kw_only=True, gc=False):
    """Equal nodes: how many, and what each of them can give away, as Kubernetes quantities (``pods`` too)."""

    count: int
    allocatable: dict[str, str]


class MemberSpec(Struct, frozen=True, kw_only=True):
    """One simulated cluster.

    ``apis`` are the kinds that it serves; name a custom kind here to have it served. ``startup_ms`` 0 means
    that a replica is ready in the turn in which it was admitted.
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


def joined(spec: MemberSpec) -> clusters.ClusterJoined:
    """What the member says of itself when it is seen for the first time."""
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
