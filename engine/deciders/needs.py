"""What other bindings need of one object, with what follows from it kept up to date.

Thousands may need one object: each decision about it looks at the needs that changed, not at all of them.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from engine.deciders.state import Need, ShardState
from events.shapes import WorkloadRef


class Needs(dict[str, Need]):
    """Needs by the key of the binding that has them. Change them by ``put`` and ``drop`` alone.

    ``changed`` are those that were not decided on as they are now; ``ref`` is the object that the last decision was
    about, None where that is not known.
    """

    def __init__(self, known: Iterable[tuple[str, Need]] = ()) -> None:
        super().__init__()
        self.changed: set[str] = set()
        self.ref: WorkloadRef | None = None
        self._applied: Counter[str] = Counter()
        for by, need in known:
            self.put(by, need)

    def put(self, by: str, need: Need) -> None:
        """Takes in what a binding needs now."""
        self._count(self.get(by), need)
        self[by] = need
        if need.clusters == need.applied and need.clusters:
            self.changed.discard(by)
        else:
            self.changed.add(by)

    def drop(self, by: str) -> None:
        """A binding needs the object no longer, and that was decided on."""
        self._count(self.pop(by), None)
        self.changed.discard(by)

    def applied(self) -> frozenset[str]:
        """The clusters in which any binding needs it, as far as that was decided."""
        return frozenset(self._applied)

    def _count(self, old: Need | None, new: Need | None) -> None:
        before, now = old.applied if old else (), new.applied if new else ()
        if before == now:
            return
        self._applied.update(now)
        for name in before:
            self._applied[name] -= 1
            if not self._applied[name]:
                del self._applied[name]


def known(shard: ShardState, key: str) -> Needs | None:
    """The needs of the object with this key; None where there are none."""
    found = shard.needs.get(key)
    if found is None or isinstance(found, Needs):
        return found
    # As a snapshot has them.
    shard.needs[key] = needs = Needs(found.items())
    return needs


def put(shard: ShardState, key: str, by: str, need: Need) -> None:
    """Takes in what a binding needs now of the object with this key."""
    needs = known(shard, key)
    if needs is None:
        shard.needs[key] = needs = Needs()
    needs.put(by, need)


def apply(shard: ShardState, key: str, applied: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """By binding, the clusters in which its need was decided on."""
    needs = known(shard, key)
    for by, clusters in applied if needs is not None else ():
        if needs is not None and by in needs:
            needs.put(by, msgspec.structs.replace(needs[by], applied=clusters))


def forget_applied(shard: ShardState, key: str) -> None:
    """What is withdrawn is nobody's any more; should it come again, all who need it count anew."""
    needs = known(shard, key)
    if needs is not None:
        apply(shard, key, [(by, ()) for by in needs])


def forget_dropped(shard: ShardState, key: str) -> None:
    """Ends the deciding of an object: needs that were dropped, and that was decided on, are forgotten."""
    needs = known(shard, key)
    if needs is None:
        return
    for by in [by for by in needs.changed if not (needs[by].clusters or needs[by].applied)]:
        needs.drop(by)
    if not needs:
        del shard.needs[key]
