"""Samples of the topic ``links``."""

from typing import Final

from events import links, shapes
from tests.golden.samples.values import AT_MS, DEPENDENCY, KEY, OCCUPANT, TEMPLATE, UID

LINKS: Final[tuple[shapes.Event, ...]] = (
    links.RescheduleRequested(
        rebalancer="demo", uid=UID, generation=1, at_ms=AT_MS, key=KEY, workload=TEMPLATE
    ),
    links.RescheduleAnswered(
        rebalancer="demo",
        uid=UID,
        generation=1,
        workload=TEMPLATE,
        result="Failed",
        reason="ReferencedBindingNotFound",
    ),
    links.DependencyNeeded(
        dependency=DEPENDENCY,
        by=KEY,
        number=7,
        clusters=("member1", "member2"),
        overwrites=True,
        preserves=True,
    ),
    links.DependencyDropped(dependency=DEPENDENCY, by=KEY, number=8, preserved=True),
    links.CapacityRequested(shard=3, key=KEY, number=7, priority=1_000, clusters=("member1", "member2")),
    links.CapacityOffered(key=KEY, number=7, shard=3, occupants=(OCCUPANT,)),
    links.PreemptionRequested(
        key=OCCUPANT.key, cluster="member1", replicas=3, by=KEY, priority=1_000, until_ms=AT_MS
    ),
    links.ClusterCleared(cluster="member1", uid=UID, shard=3),
)
