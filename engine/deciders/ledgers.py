"""Claims on quotas and workload groups: one copy in the binding's shard, one in the owner shard."""

from msgspec import Struct


class QuotaClaim(Struct, gc=False):
    """A binding's use of its namespace's overall quotas (``used``), and the amounts requested last (``wanted``).

    The binding's shard and the quotas' owner shard have a copy each. Amounts are in the units of
    ``quota_amounts.Amounts``; ``wanted`` is empty without a request. ``number`` is the number of the last request;
    ``fault`` is the reason if that request was refused.
    """

    number: int
    used: dict[str, int]
    wanted: dict[str, int] = {}
    is_granted: bool = False
    fault: str = ""

    @property
    def reserved(self) -> dict[str, int]:
        """The amounts that count as used: ``wanted`` if it is granted, otherwise ``used``."""
        return self.wanted if self.is_granted else self.used


class Ledger(Struct, gc=False):
    """All claims on a namespace's overall quotas, by binding key; kept in the owner shard of these quotas.

    ``totals`` are the sums of the reserved amounts. ``open`` has the claims that are not granted, in the order of
    their arrival; ``shown`` are the totals in the last decision, by quota and resource.
    """

    namespace: str
    claims: dict[str, QuotaClaim] = {}
    totals: dict[str, int] = {}
    open: dict[str, bool] = {}
    shown: dict[str, dict[str, str]] = {}


class GroupMember(Struct, gc=False):
    """A seat: a binding in a group of workloads, its clusters (``placed``), and the last requested ones (``wanted``).

    The binding's shard and the group's owner shard have a copy each. ``number`` is the number of the last claim. The
    last verdict (``GroupVerdict``) sets ``is_bound`` if another binding of the group has clusters. It sets ``others``
    to the clusters of the other bindings; if all bindings must share their clusters, to those that the others have in
    common. ``asked_bound`` and ``asked_others`` are ``is_bound`` and ``others`` at the time when ``wanted`` was chosen.
    """

    number: int
    placed: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    is_granted: bool = False
    is_answered: bool = False
    is_bound: bool = False
    others: tuple[str, ...] = ()
    asked_bound: bool = False
    asked_others: tuple[str, ...] = ()

    @property
    def reserved(self) -> set[str]:
        """The clusters that count for other bindings of the group: ``placed``, and ``wanted`` if it is granted."""
        return {*self.placed, *(self.wanted if self.is_granted else ())}


class WorkloadGroup(Struct, gc=False):
    """A group of workloads, in its owner shard; ``apart``: its bindings share no clusters, otherwise they share all.

    ``seats`` are the seats of its bindings, by binding key. ``open`` has the keys of the claims that are not granted,
    in the order of their arrival.
    """

    apart: bool
    seats: dict[str, GroupMember] = {}
    open: dict[str, bool] = {}
