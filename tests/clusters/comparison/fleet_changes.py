"""Random changes of clusters, which concern all scenarios.

Taints, labels, locations, grades of nodes, conditions and free capacity change; now and then a cluster leaves, and
joins again later. So do the policies that taint clusters.
"""

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from events.json_values import Json, object_at
from tests.builders.manifests import POLICIES, manifest
from tests.clusters.comparison import fleet

_LEAVES: Final = 0.3
_JOINS: Final = 0.5
_DELETES: Final = 0.25
_EDITS_POLICY: Final = 0.25
_SHOWN: Final = 200
"""Characters of a change that are printed."""

_MOST: Final = "9223372036854775807"


def _grade(grade: int, **bounds: tuple[str, str]) -> Json:
    ranges = [{"name": name, "min": least, "max": most} for name, (least, most) in bounds.items()]
    return {"grade": grade, "ranges": ranges}


_MODELS: Final[tuple[Json, ...]] = (
    {"resourceModels": [_grade(0, cpu=("0", "2")), _grade(1, cpu=("2", _MOST))]},
    {
        "resourceModels": [
            _grade(0, cpu=("0", "500m"), memory=("0", "1Gi")),
            _grade(1, cpu=("500m", "3"), memory=("1Gi", "2Gi")),
            _grade(2, cpu=("3", _MOST), memory=("2Gi", _MOST)),
        ]
    },
    {"resourceModels": None},
)
"""Grades of nodes; without them, a cluster gets the default ones."""

_MODELINGS: Final[tuple[tuple[Json, ...] | None, ...]] = (
    ({"grade": 0, "count": 2}, {"grade": 1, "count": 3}),
    ({"grade": 1, "count": 1}, {"grade": 2, "count": 2}),
    ({"grade": 0, "count": 9},),
    None,
)
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
    {"region": "r3"},
    {"region": None},
    {"provider": "x"},
    {"provider": "z"},
    {"provider": None},
    {"zones": ["z1", "z4"]},
    {"zones": None},
)


_TAINTED: Final[dict[str, tuple[Json, ...]]] = {
    "failed": ({"key": "failed", "effect": "NoExecute"}, {"key": "failed", "effect": "NoSchedule"}),
    "full": (
        {"key": "full", "value": "disk", "effect": "NoSchedule"},
        {"key": "full", "value": "other", "effect": "NoExecute"},
    ),
    "later": (
        {"key": "failed", "effect": "NoExecute"},
        {"key": "dedicated", "value": "x", "effect": "NoExecute"},
    ),
}
"""Taints of policies by name; the last policy, created later, shares taints with others."""

_TARGETS: Final[tuple[Json, ...]] = (
    {"labelSelector": {"matchLabels": {"env": "a"}}},
    {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r1"]}]}},
    {"clusterNames": ["p1", "p4", "p6"], "exclude": ["p4"]},
)


def _is(kind: str, operator: str, *statuses: str) -> Json:
    return {"conditionType": kind, "operator": operator, "statusValues": list(statuses)}


_CONDITIONS: Final = (
    _is("Ready", "In", "True"),
    _is("Ready", "NotIn", "True"),
    _is("Ready", "In", "False", "Unknown"),
    _is("DiskFull", "In", "True"),
    _is("DiskFull", "NotIn", "True"),
    _is("Unknown", "NotIn", "True"),
)


def _taint_policy(
    name: str, add: Sequence[Json], remove: Sequence[Json], *taints: Json, **fields: object
) -> Json:
    conditions = {"addOnConditions": add, "removeOnConditions": remove}
    spec = {"taints": taints, **{part: value for part, value in conditions.items() if value}, **fields}
    return manifest(POLICIES, "ClusterTaintPolicy", name, spec=spec)


TAINT_POLICIES: Final = (
    _taint_policy("failed", _CONDITIONS[1:2], _CONDITIONS[:1], _TAINTED["failed"][0]),
    _taint_policy(
        "full", _CONDITIONS[3:4], _CONDITIONS[4:5], _TAINTED["full"][0], targetClusters=_TARGETS[0]
    ),
)
"""Policies that taint clusters by their conditions; they exist before the scenarios."""


def _drawn_policy(rng: random.Random) -> Json:
    """Return a policy after an edit; one without a spec is to be deleted."""
    name = rng.choice(sorted(_TAINTED))
    if rng.random() < _DELETES:
        return manifest(POLICIES, "ClusterTaintPolicy", name)
    add, remove = (rng.sample(_CONDITIONS, rng.choice((0, 1, 1, 2))) for _ in range(2))
    taints = rng.sample(_TAINTED[name], rng.randint(1, 2))
    targets: Json = {"targetClusters": rng.choice(_TARGETS)} if rng.random() < 0.5 else {}
    return _taint_policy(name, add or _CONDITIONS[1:2], remove, *taints, **targets)


class Membership(StrEnum):
    """What a change does to the membership of a cluster."""

    STAYS = "stays"
    LEAVES = "leaves"
    JOINS = "joins"


class FleetChange(Struct, frozen=True):
    """Merge patches of a cluster that stays, and of its status; None for a part that does not change.

    Or a policy for taints, and no cluster.
    """

    cluster: str = ""
    patch: Json | None = None
    status: Json | None = None
    membership: Membership = Membership.STAYS
    policy: Json | None = None

    def __str__(self) -> str:
        if self.membership is not Membership.STAYS:
            return f"{self.cluster} {self.membership}"
        if self.policy is not None:
            return f"{object_at(self.policy, 'metadata')['name']} becomes {self.policy.get('spec')}"
        return f"{self.cluster} gets {self.patch or self.status}"[:_SHOWN]

    def absent(self, before: str) -> str:
        """Return the cluster that is absent after this change, or an empty text."""
        after = {Membership.STAYS: before, Membership.LEAVES: self.cluster, Membership.JOINS: ""}
        return after[self.membership]


def drawn(rng: random.Random, absent: str = "") -> FleetChange:
    """Return a change of a cluster; one of the cluster that is ``absent`` lets it join again."""
    if rng.random() < _EDITS_POLICY:
        return FleetChange(policy=_drawn_policy(rng))
    cluster = rng.choice(fleet.FLEET)
    if absent and rng.random() < _JOINS:
        return FleetChange(absent, membership=Membership.JOINS)
    if cluster.name == absent:
        cluster = next(other for other in fleet.FLEET if other.name != absent)
    if not absent and rng.random() < _LEAVES:
        return FleetChange(cluster.name, membership=Membership.LEAVES)
    return _changed(rng, cluster)


def _changed(rng: random.Random, cluster: fleet.Cluster) -> FleetChange:
    """Return a change of a cluster that stays."""
    part = rng.random()
    if part < 0.3:
        # A second draw removes the taint again.
        taints = rng.choice(([], [rng.choice(_TAINTS)]))
        return FleetChange(cluster.name, {"spec": {"taints": taints}})
    if part < 0.5:
        return FleetChange(cluster.name, {"metadata": {"labels": rng.choice(_LABELS)}})
    if part < 0.7:
        return FleetChange(cluster.name, {"spec": rng.choice(_LOCATIONS if rng.random() < 0.6 else _MODELS)})
    if part < 0.87:
        ready = rng.choice(("True", "True", "False", "Unknown"))
        status = fleet.conditions(Ready=ready, DiskFull=rng.choice(("True", "False")))
        return FleetChange(cluster.name, status={"conditions": status})
    if part < 0.91:
        return FleetChange(cluster.name, status={"apiEnablements": fleet.enablements(rng.random() < 0.5)})
    used = {"cpu": rng.choice(("0", "2", "4")), "memory": "1Gi", "pods": rng.choice(("0", "9", "30"))}
    summary: Json = {"allocatable": cluster.allocatable, "allocated": used}
    if rng.random() < 0.5:
        summary = {"allocatableModelings": rng.choice(_MODELINGS)}
    return FleetChange(cluster.name, status={"resourceSummary": summary})
