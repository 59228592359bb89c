"""Six clusters, and the taints that policies or the engine added to them."""

from engine.deciders import cluster_health
from events import clusters
from tests.builders.inputs import key
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = tuple(f"member{index}" for index in range(1, 7))
CONFIRM_S = cluster_health.CONFIRM_MS // 1000
PACE_S = cluster_health.PACE_MS // 1000
BUILT_IN = "cluster.karmada.io/"
NOT_READY = ("cluster.karmada.io/not-ready", "NoSchedule")
UNREACHABLE = ("cluster.karmada.io/unreachable", "NoSchedule")


async def taints(story: Story) -> dict[str, list[str]]:
    """Return the effects of the taints that policies added, per tainted cluster."""
    return {
        name: effects
        for name, cluster_taints in _taints(story).items()
        if (effects := [effect for taint_key, effect in cluster_taints if not taint_key.startswith(BUILT_IN)])
    }


def built_in_taints(story: Story) -> dict[str, list[tuple[str, str]]]:
    """Return key and effect of the taints that no policy added, per tainted cluster."""
    return {
        name: built_in
        for name, cluster_taints in _taints(story).items()
        if (built_in := [taint for taint in cluster_taints if taint[0].startswith(BUILT_IN)])
    }


async def tainted_by_policies(story: Story) -> list[str]:
    """Return the clusters to which policies added taints, in order."""
    return [
        event.name
        for event in await story.recorded(clusters.ClusterTainted)
        if not event.taint.key.startswith(BUILT_IN)
    ]


def _taints(story: Story) -> dict[str, list[tuple[str, str]]]:
    fleet = story.worker.facts.fleet
    joined_clusters = {name: cluster for name in MEMBERS if (cluster := fleet.get(name)) is not None}
    return {
        name: [(taint.key, taint.effect) for taint in cluster.spec.taints]
        for name, cluster in joined_clusters.items()
    }
