"""Topic ``decisions``: preemption."""

from events import decisions, shapes, topics


@shapes.recorded("room-wanted", topics.DECISIONS)
class CapacityWanted(decisions.BindingDecision, frozen=True, kw_only=True):
    """The binding lacks capacity and asks all shards, by links, for bindings of lower priority.

    ``number`` is that of the shard's step; the answers repeat it. ``missing`` is the number of replicas without
    capacity, ``clusters`` are those where freed capacity would help. The binding asks again at ``again_ms`` at the
    earliest; ``attempt`` counts from 1.
    """

    number: shapes.Count
    priority: shapes.Whole
    missing: shapes.Count
    clusters: tuple[str, ...]
    again_ms: shapes.Instant
    attempt: shapes.Count = 1


@shapes.recorded("preemption-decided", topics.DECISIONS)
class PreemptionDecided(decisions.BindingDecision, frozen=True, kw_only=True):
    """The preemption victims of the binding, chosen from all shards' answers, or the ``reason`` why there are none.

    A link, valid until ``again_ms``, asks each victim's shard to evict it; until then the binding chooses no other
    victims.
    """

    number: shapes.Count
    again_ms: shapes.Instant
    victims: tuple[shapes.Occupant, ...] = ()
    reason: str = ""
