"""Topic ``decisions``: clusters of groups of workloads that are kept together or apart (``workloadAffinity``)."""

from events import decisions, shapes


class GroupClaimed(decisions.BindingDecision, frozen=True, kw_only=True):
    """The clusters of a binding that belongs to a group, and those that it wants to have next (empty: no others).

    The group's owner shard answers the newest ``number``.
    """

    group: str
    number: shapes.Count
    placed: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


class GroupVerdict(shapes.Shape, frozen=True, kw_only=True):
    """The answer to the claim ``number`` of the binding ``by``: whether it is granted, and the clusters of the others.

    ``others`` are the clusters that any of the group's other bindings has, or for a group that is kept together
    those that all of them have; without ``bound`` no other binding has any.
    """

    by: str
    number: shapes.Count
    granted: bool = False
    bound: bool = False
    others: tuple[str, ...] = ()


class GroupDecided(shapes.Event, frozen=True, kw_only=True):
    """Claims of a group's bindings that are granted or refused."""

    group: str
    verdicts: tuple[GroupVerdict, ...] = ()

    @property
    def subject(self) -> str:
        return self.group

    @property
    def related(self) -> tuple[str, ...]:
        return tuple(verdict.by for verdict in self.verdicts)
