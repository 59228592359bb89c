"""The topics of the log: names, partition counts and readers."""

from typing import Final

from msgspec import Struct

PREFIX: Final = "reballast."
"""Default prefix of the names of topics on Kafka."""

SHARDS: Final = 12
"""Partitions of the sharded topics; cannot change during the life of a log."""

SPECS: Final = "specs"
POLICIES: Final = "policies"
CLUSTERS: Final = "clusters"
HEALTH: Final = "health"
DECISIONS: Final = "decisions"
LINKS: Final = "links"
WORKS: Final = "works"
REJECTIONS: Final = "rejections"
OBSERVATIONS: Final = "observations"


class Topic(Struct, frozen=True, kw_only=True):
    """One topic of the log.

    Sharded topics have one partition per shard, the others one. ``key`` and ``carries`` are descriptions for users.
    """

    name: str
    partitions: int
    key: str
    carries: str

    @property
    def sharded(self) -> bool:
        return self.partitions == SHARDS


TOPICS: Final[dict[str, Topic]] = {
    topic.name: topic
    for topic in (
        Topic(
            name=SPECS,
            partitions=SHARDS,
            key="binding key; a rebalancer's own",
            carries="templates, rebalancers",
        ),
        Topic(
            name=POLICIES,
            partitions=1,
            key="object key",
            carries="policies, namespaces, interpreters, PriorityClasses",
        ),
        Topic(
            name=CLUSTERS, partitions=1, key="cluster", carries="clusters, their taints, labels and capacity"
        ),
        Topic(name=HEALTH, partitions=SHARDS, key="binding key", carries="reports of members on workloads"),
        Topic(name=DECISIONS, partitions=SHARDS, key="the shard", carries="steps and their decisions"),
        Topic(
            name=LINKS,
            partitions=SHARDS,
            key="key of the receiver",
            carries="requests and answers between shards",
        ),
        Topic(name=WORKS, partitions=SHARDS, key="cluster", carries="works: what each cluster must run"),
        Topic(name=REJECTIONS, partitions=1, key="source topic", carries="refused inputs, with reasons"),
        Topic(
            name=OBSERVATIONS,
            partitions=1,
            key="object key",
            carries="objects of another control plane, comparisons of its decisions; Events that clients write",
        ),
    )
}
"""The topics by name. Topics of causes precede those of effects, since Kafka records are numbered in this order."""

FACT_TOPICS: Final = (CLUSTERS, POLICIES)
"""Low-volume input topics that every shard reads, in the order in which a step folds them."""

OWN_TOPICS: Final = (SPECS, HEALTH, LINKS)
"""Input topics of which each shard reads one partition, in the order in which a step folds them."""
