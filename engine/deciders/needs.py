"""Needs for an object: which bindings depend on it, and in which clusters.

The terms of a need also say whether the object overwrites existing ones, and stays in its clusters when it is deleted.
Thousands of bindings may depend on one object, so a decision looks only at the needs that changed since the last one.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from engine.deciders.state import NOT_NEEDED, Binding, Need, ShardState, Terms
from events.shapes import WorkloadRef


class Needs(dict[str, Need]):
    """The needs for one object, by the key of the dependent binding. Change them with ``put`` and ``drop`` only.

    ``changed`` has the keys of needs that ended, or whose terms differ from those of the last decision. ``ref`` is the
    reference of the object in the last decision (None: unknown).
    """

    def __init__(self, needs: Iterable[tuple[str, Need]] = ()) -> None:
        super().__init__()
        self.changed: set[str] = set()
        self.ref: WorkloadRef | None = None
        self._applied: Counter[str] = Counter()
        self._overwriting = self._preserving = 0
        for by, need in needs:
            self.put(by, need)

    def put(self, by: str, need: Need) -> None:
        """Store the current need of a binding."""
        self._count(self.get(by), need)
        self[by] = need
        if need.terms == need.applied and need.terms.clusters:
            self.changed.discard(by)
        else:
            self.changed.add(by)

    def drop(self, by: str) -> None:
        """Remove a dropped need; call this only after a decision has recorded that it was dropped."""
        self._count(self.pop(by), None)
        self.changed.discard(by)

    def applied(self) -> frozenset[str]:
        """Return the clusters in which any binding needs the object, as of the last decisions."""
        return frozenset(self._applied)

    @property
    def overwrites(self) -> bool:
        """Whether works of the object take over existing objects, because a dependent binding requests that."""
        return self._overwriting > 0

    @property
    def preserves(self) -> bool:
        """Whether the object stays in its clusters when it is deleted, because a dependent binding requests that."""
        return self._preserving > 0

    def _count(self, old: Need | None, new: Need | None) -> None:
        before, now = old.applied if old else NOT_NEEDED, new.applied if new else NOT_NEEDED
        if before == now:
            return
        self._overwriting += now.overwrites - before.overwrites
        self._preserving += now.preserves - before.preserves
        self._applied.update(now.clusters)
        for name in before.clusters:
            self._applied[name] -= 1
            if not self._applied[name]:
                del self._applied[name]


def of(shard: ShardState, key: str) -> Needs | None:
    """Return the needs that other bindings have for the object with this key; None if no binding needs it."""
    needs_of_object = shard.needs.get(key)
    if needs_of_object is None or isinstance(needs_of_object, Needs):
        return needs_of_object
    # A snapshot restores plain dicts; build the derived data at first use.
    shard.needs[key] = needs = Needs(needs_of_object.items())
    return needs


def put(shard: ShardState, key: str, by: str, need: Need) -> None:
    """Store the current need of a binding for the object with this key."""
    needs = of(shard, key)
    if needs is None:
        shard.needs[key] = needs = Needs()
    needs.put(by, need)


def apply(shard: ShardState, key: str, applied: Iterable[tuple[str, Terms]]) -> None:
    """Record a decision on the needs for an object; ``applied`` has (key of the binding, decided terms)."""
    needs = of(shard, key)
    if needs is None:
        return
    for by, terms in applied:
        if by in needs:
            needs.put(by, msgspec.structs.replace(needs[by], applied=terms))


def forget_applied(shard: ShardState, key: str) -> None:
    """Reset the terms of the last decision, because the object's binding is withdrawn.

    If the binding returns, all needs count as changed.
    """
    needs = of(shard, key)
    if needs is not None:
        apply(shard, key, [(by, NOT_NEEDED) for by in needs])


def forget_dropped(shard: ShardState, key: str) -> None:
    """Remove the needs for an object that a decision has recorded as dropped."""
    needs = of(shard, key)
    if needs is None:
        return
    for by in [by for by in needs.changed if not (needs[by].terms.clusters or needs[by].applied.clusters)]:
        needs.drop(by)
    if not needs:
        del shard.needs[key]


def overwrites(shard: ShardState, binding: Binding) -> bool:
    """Return whether works of an object take over existing objects, because a dependent binding requests it.

    False if a policy has ever claimed the object.
    """
    needs = None if binding.last_claim else of(shard, binding.key)
    return needs is not None and needs.overwrites


def preserves(shard: ShardState, binding: Binding) -> bool:
    """Return whether an object stays in its clusters when it is deleted.

    Its last policy requests that; or, if no policy has ever claimed it, a dependent binding.
    """
    needs = None if binding.last_claim else of(shard, binding.key)
    return binding.preserves or (needs is not None and needs.preserves)
