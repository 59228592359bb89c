"""Topic ``decisions``: the decisions about a cluster."""

from events import clusters, shapes, topics


class ClusterDecision(shapes.Event, frozen=True, kw_only=True):
    """Base of the decisions about a cluster."""

    name: str

    @property
    def subject(self) -> str:
        return self.name


@shapes.recorded("cluster-silenced", topics.DECISIONS)
class ClusterSilenced(ClusterDecision, frozen=True, kw_only=True):
    """A cluster's reporter missed its grace period; the owner shard then writes the cluster's health as an input."""

    heard_ms: shapes.Instant
    grace_seconds: shapes.Seconds


@shapes.recorded("cluster-judged", topics.DECISIONS)
class ClusterJudged(ClusterDecision, frozen=True, kw_only=True):
    """Taints to add to a cluster and to remove from it, by ClusterTaintPolicies and the cluster's health.

    The owner shard then writes the changes as inputs. ``status`` is that of the condition Ready, ``version`` the write
    version of the cluster that was evaluated.
    """

    status: str
    version: shapes.Count
    added: tuple[clusters.Taint, ...] = ()
    removed: tuple[clusters.Taint, ...] = ()


@shapes.recorded("cluster-vacated", topics.DECISIONS)
class ClusterVacated(ClusterDecision, frozen=True, kw_only=True):
    """No shard has a work left in a leaving cluster; the owner shard then writes ``ClusterLeft`` as an input."""

    uid: str
