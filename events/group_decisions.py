"""Topic ``decisions``: clusters of groups of workloads that are kept together or apart (``workloadAffinity``)."""

from events import decisions, shapes, topics


@shapes.recorded("group-claimed", topics.DECISIONS)
class GroupClaimed(decisions.BindingDecision, frozen=True, kw_only=True):
    """A binding in a group claims clusters: those that it has (``placed``) and those that it requests (``wanted``).

    The group's owner shard answers the claim with the newest ``number``.
    """

    group: str
    number: shapes.Count
    placed: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


class GroupVerdict(shapes.Shape, frozen=True, kw_only=True):
    """The verdict on claim ``number`` of the binding ``by``, and the clusters of the other bindings of its group.

    ``bound``: another binding of the group has clusters. ``others`` are all clusters of the other bindings; for a
    group that is kept together, the clusters that all of them have in common.
    """

    by: str
    number: shapes.Count
    granted: bool = False
    bound: bool = False
    others: tuple[str, ...] = ()


@shapes.recorded("group-decided", topics.DECISIONS)
class GroupDecided(shapes.Event, frozen=True, kw_only=True):
    """The owner shard of a group of bindings grants or refuses their claims to clusters (`GroupClaimed`)."""

    group: str
    verdicts: tuple[GroupVerdict, ...] = ()

    @property
    def subject(self) -> str:
        return self.group

    @property
    def related(self) -> tuple[str, ...]:
        return tuple(verdict.by for verdict in self.verdicts)
