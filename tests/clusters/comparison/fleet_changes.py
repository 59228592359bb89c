"""Random changes of clusters, which concern all scenarios.

Taints, labels, locations, conditions and free capacity change; now and then a cluster leaves, and joins again later.
"""

import random
from enum import StrEnum
from typing import Final

from msgspec import Struct

from events.json_values import Json
from tests.builders.manifests import POLICIES, manifest
from tests.clusters.comparison import fleet

_LEAVES: Final = 0.3
_JOINS: Final = 0.5
_SHOWN: Final = 200
"""Characters of a change that are printed."""

EVICTING: Final[Json] = {"key": "maintenance", "effect": "NoExecute"}
_TAINTS: Final[tuple[Json, ...]] = (
    EVICTING,
    EVICTING,
    {"key": "dedicated", "value": "x", "effect": "NoExecute"},
    {"key": "dedicated", "value": "y", "effect": "NoSchedule"},
)
_LABELS: Final[tuple[Json, ...]] = ({"env": "a"}, {"env": "b"}, {"env": "c"}, {"tier": "1"}, {"tier": None})
_LOCATIONS: Final[tuple[Json, ...]] = (
    {"region": "r1"},
    {"region": "r2"},
    {"provider": "x"},
    {"zones": ["z1", "z4"]},
)


def _taint_policy(name: str, taint: Json, add: Json, remove: Json, **fields: object) -> Json:
    conditions = {"addOnConditions": [add], "removeOnConditions": [remove]}
    return manifest(POLICIES, "ClusterTaintPolicy", name, spec={"taints": [taint], **conditions, **fields})


def _is(kind: str, operator: str, status: str) -> Json:
    return {"conditionType": kind, "operator": operator, "statusValues": [status]}


TAINT_POLICIES: Final = (
    _taint_policy(
        "failed",
        {"key": "failed", "effect": "NoExecute"},
        _is("Ready", "NotIn", "True"),
        _is("Ready", "In", "True"),
    ),
    _taint_policy(
        "full",
        {"key": "full", "value": "disk", "effect": "NoSchedule"},
        _is("DiskFull", "In", "True"),
        _is("DiskFull", "In", "False"),
        targetClusters={"labelSelector": {"matchLabels": {"env": "a"}}},
    ),
)
"""Policies that taint clusters by their conditions."""


class Membership(StrEnum):
    """What a change does to the membership of a cluster."""

    STAYS = "stays"
    LEAVES = "leaves"
    JOINS = "joins"


class FleetChange(Struct, frozen=True):
    """Merge patches of a cluster that stays, and of its status; None for a part that does not change."""

    cluster: str
    patch: Json | None = None
    status: Json | None = None
    membership: Membership = Membership.STAYS

    def __str__(self) -> str:
        if self.membership is not Membership.STAYS:
            return f"{self.cluster} {self.membership}"
        return f"{self.cluster} gets {self.patch or self.status}"[:_SHOWN]

    def absent(self, before: str) -> str:
        """Return the cluster that is absent after this change, or an empty text."""
        after = {Membership.STAYS: before, Membership.LEAVES: self.cluster, Membership.JOINS: ""}
        return after[self.membership]


def drawn(rng: random.Random, absent: str = "") -> FleetChange:
    """Return a change of a cluster; one of the cluster that is ``absent`` lets it join again."""
    cluster = rng.choice(fleet.FLEET)
    if absent and rng.random() < _JOINS:
        return FleetChange(absent, membership=Membership.JOINS)
    if cluster.name == absent:
        cluster = next(other for other in fleet.FLEET if other.name != absent)
    if not absent and rng.random() < _LEAVES:
        return FleetChange(cluster.name, membership=Membership.LEAVES)
    part = rng.random()
    if part < 0.35:
        # A second draw removes the taint again.
        taints = rng.choice(([], [rng.choice(_TAINTS)]))
        return FleetChange(cluster.name, {"spec": {"taints": taints}})
    if part < 0.5:
        return FleetChange(cluster.name, {"metadata": {"labels": rng.choice(_LABELS)}})
    if part < 0.6:
        return FleetChange(cluster.name, {"spec": rng.choice(_LOCATIONS)})
    if part < 0.85:
        ready = rng.choice(("True", "True", "False", "Unknown"))
        status = fleet.conditions(Ready=ready, DiskFull=rng.choice(("True", "False")))
        return FleetChange(cluster.name, status={"conditions": status})
    if rng.random() < 0.3:
        return FleetChange(cluster.name, status={"apiEnablements": fleet.enablements(rng.random() < 0.5)})
    used = {"cpu": rng.choice(("0", "2", "4")), "memory": "1Gi", "pods": rng.choice(("0", "9", "30"))}
    summary = {"allocatable": cluster.allocatable, "allocated": used}
    return FleetChange(cluster.name, status={"resourceSummary": summary})
