"""Configuration of a simulated member: nodes, location, served kinds, start-up time of replicas.

It does not change while the member runs; the module ``state`` has the member's state.
"""

import uuid
from typing import Final

from msgspec import Struct

from events import clusters
from events.validation.kinds_table import RELEASE

_UID_NAMESPACE: Final = uuid.UUID("5b0f6a34-54a4-4d7e-8f4c-2d3c7c5a9f11")
"""UUID namespace of the uids in members."""

STARTUP_MS: Final = 200
"""Default time from a replica's admission until it is ready: visible to users, but short."""


class NodeGroup(Struct, frozen=True, kw_only=True, gc=False):
    """Equal nodes: their number, and the allocatable resources of each (``pods`` included) as Kubernetes quantities."""

    count: int
    allocatable: dict[str, str]


class MemberSpec(Struct, frozen=True, kw_only=True):
    """One simulated cluster.

    ``apis`` are the kinds that it serves, custom ones included. With ``startup_ms`` 0 a replica is ready in the
    turn of its admission. A ``modelled`` cluster represents a real one, of which only reports are known:
    replicas that it reported as ready run, even if they exceed its capacity. If a member ``has_agent``, the agent
    reports its health. The agent fails with the member, so no report follows when the member goes down.
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
    modelled: bool = False
    has_agent: bool = False

    @property
    def node_count(self) -> int:
        return sum(group.count for group in self.nodes)


def uid(member: str, *parts: str) -> str:
    """Return the uid of an object in a member, derived from the member's name and from ``parts``."""
    return str(uuid.uuid5(_UID_NAMESPACE, "\0".join((member, *parts))))


def joined_event(spec: MemberSpec) -> clusters.ClusterJoined:
    """Return the event with which a new member joins; as in Karmada, its id is the uid of its kube-system namespace."""
    return clusters.ClusterJoined(
        name=spec.name,
        labels=spec.labels,
        provider=spec.provider,
        region=spec.region,
        zones=spec.zones,
        taints=spec.taints,
        apis=spec.apis,
        id=uid(spec.name, "namespace", "kube-system"),
        kubernetes_version=RELEASE,
    )
