"""Random changes of clusters, which concern all scenarios: taints, labels, locations, free capacity."""

import random
from typing import Final

from msgspec import Struct

from events.json_values import Json
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
    if part < 0.5:
        # A second draw removes the taint again.
        taints = rng.choice(([], [rng.choice(_TAINTS)]))
        return FleetChange(cluster.name, {"spec": {"taints": taints}})
    if part < 0.65:
        return FleetChange(cluster.name, {"metadata": {"labels": rng.choice(_LABELS)}})
    if part < 0.8:
        return FleetChange(cluster.name, {"spec": rng.choice(_LOCATIONS)})
    used = {"cpu": rng.choice(("0", "2", "4")), "memory": "1Gi", "pods": rng.choice(("0", "9", "30"))}
    summary = {"allocatable": cluster.allocatable, "allocated": used}
    return FleetChange(cluster.name, status={"resourceSummary": summary})
