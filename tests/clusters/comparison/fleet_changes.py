"""Random changes of clusters, which concern all scenarios: taints, labels, locations, conditions, free capacity."""

import random
from typing import Final

from msgspec import Struct

from events.json_values import Json
from tests.builders.manifests import POLICIES, manifest
from tests.clusters.comparison import fleet

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


class FleetChange(Struct, frozen=True):
    """Merge patches of a cluster and of its status; None for a part that does not change."""

    cluster: str
    patch: Json | None = None
    status: Json | None = None

    def __str__(self) -> str:
        return f"{self.cluster} gets {self.patch or self.status}"


def drawn(rng: random.Random) -> FleetChange:
    """Return a change of a cluster."""
    cluster = rng.choice(fleet.FLEET)
    part = rng.random()
    if part < 0.35:
        # A second draw removes the taint again.
        taints = rng.choice(([], [rng.choice(_TAINTS)]))
        return FleetChange(cluster.name, {"spec": {"taints": taints}})
    if part < 0.5:
        return FleetChange(cluster.name, {"metadata": {"labels": rng.choice(_LABELS)}})
    if part < 0.6:
        return FleetChange(cluster.name, {"spec": rng.choice(_LOCATIONS)})
    if part < 0.9:
        ready = rng.choice(("True", "True", "False", "Unknown"))
        status = fleet.conditions(Ready=ready, DiskFull=rng.choice(("True", "False")))
        return FleetChange(cluster.name, status={"conditions": status})
    used = {"cpu": rng.choice(("0", "2", "4")), "memory": "1Gi", "pods": rng.choice(("0", "9", "30"))}
    summary = {"allocatable": cluster.allocatable, "allocated": used}
    return FleetChange(cluster.name, status={"resourceSummary": summary})
