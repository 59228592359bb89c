"""Finding the bindings of a shard that a fact concerns, without walking all of them.

Derived from the bindings alone, so it is rebuilt, never stored.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from engine.deciders.state import Binding
from events.shapes import PolicyRef


class _Entry(Struct, frozen=True, gc=False):
    clusters: frozenset[str]
    policy: PolicyRef | None
    group: tuple[str, str] | None
    kind: tuple[str, str] | None
    blocked: bool
    unranked: bool = False


_Term = TypeVar("_Term")
_NOTHING = _Entry(frozenset(), None, None, None, False)  # noqa: FBT003  # in the fields' order


class Indexes:
    """Keys by cluster (scheduled, evicted, told to run), policy, placement with group, kind.

    And those that are blocked, and those whose PriorityClass is not there.
    """

    def __init__(self, bindings: Iterable[Binding] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        self.by_cluster: defaultdict[str, set[str]] = defaultdict(set)
        self.by_policy: defaultdict[PolicyRef, set[str]] = defaultdict(set)
        self.by_group: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.by_kind: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.blocked: set[str] = set()
        self.unranked: set[str] = set()
        for binding in bindings:
            self.update(binding.key, binding)

    def update(self, key: str, binding: Binding | None) -> None:
        """Brings the indexes up to a binding's present state; None where it is gone."""
        old = self._entries.get(key, _NOTHING)
        new = _entry(binding) if binding else _NOTHING
        if old == new:
            return
        if old.clusters != new.clusters:
            _move_all(self.by_cluster, key, old.clusters, new.clusters)
        if old.policy != new.policy:
            _move(self.by_policy, key, old.policy, new.policy)
        if old.group != new.group:
            _move(self.by_group, key, old.group, new.group)
        if old.kind != new.kind:
            _move(self.by_kind, key, old.kind, new.kind)
        if new.blocked:
            self.blocked.add(key)
        else:
            self.blocked.discard(key)
        if new.unranked:
            self.unranked.add(key)
        else:
            self.unranked.discard(key)
        if binding:
            self._entries[key] = new
        else:
            del self._entries[key]


def _entry(binding: Binding) -> _Entry:
    clusters = {name for name, _ in binding.clusters}
    clusters.update(binding.works, (task.cluster for task in binding.tasks))
    ref, claim = binding.template.ref if binding.template else None, binding.claim
    # By place, as it is made twice for each decision.
    return _Entry(
        frozenset(clusters),
        claim.policy if claim else None,
        (claim.placement, binding.affinity) if claim else None,
        (ref.api_version, ref.kind) if ref else None,
        binding.blocked,
        binding.rank is not None and bool(binding.rank.fault),
    )


def _move(index: defaultdict[_Term, set[str]], key: str, old: _Term | None, new: _Term | None) -> None:
    _move_all(index, key, _single(old), _single(new))


def _move_all(
    index: defaultdict[_Term, set[str]], key: str, old: frozenset[_Term], new: frozenset[_Term]
) -> None:
    for term in old - new:
        index[term].discard(key)
        if not index[term]:
            del index[term]
    for term in new - old:
        index[term].add(key)


def _single(term: _Term | None) -> frozenset[_Term]:
    return frozenset() if term is None else frozenset((term,))
