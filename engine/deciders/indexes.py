"""Indexes to find the bindings that a changed fact affects, without a walk over all bindings of the shard.

Derived from the bindings, templates and watched clusters of the shard, so they are rebuilt at start and not stored.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from msgspec import Struct

from engine.deciders.state import Binding, Template, Watch
from engine.domain.clusters import READY
from engine.objects import selector_index
from engine.placement.failures import NO_CLUSTER_FIT
from engine.shared_values import shared
from events.shapes import PolicyRef

_NO_KEYS: Final[dict[str, None]] = {}


class _Entry(Struct, frozen=True, gc=False):
    """The values by which a binding is indexed. Bindings with equal values share one object."""

    clusters: frozenset[str]
    policy: PolicyRef | None
    group: tuple[str, str] | None
    blocked: bool
    unranked: bool = False
    unfit: bool = False


_Term = TypeVar("_Term")
_Index = dict[_Term, dict[str, None]]
"""Keys of bindings or templates by indexed value. Sets would take up to three times the memory of the dictionaries."""

_NOTHING = _Entry(frozenset(), None, None, False)  # noqa: FBT003  # in the fields' order


class _Group:
    """The templates of one kind in one namespace, by name and by the labels that policies select."""

    def __init__(self) -> None:
        self.keys: dict[str, Template] = {}
        # Most names and labels are never used by a selector, so both are indexed at their first use.
        self._by_name: _Index[str] | None = None
        # Label key, then value.
        self._by_label: dict[str, _Index[str]] = {}

    def add(self, key: str, template: Template) -> None:
        self.keys[key] = template
        if self._by_name is not None:
            _move(self._by_name, key, None, template.ref.name)
        for label in self._by_label.keys() & template.labels.keys():
            _move(self._by_label[label], key, None, template.labels[label])

    def remove(self, key: str) -> None:
        template = self.keys.pop(key)
        if self._by_name is not None:
            _move(self._by_name, key, template.ref.name, None)
        for label in self._by_label.keys() & template.labels.keys():
            _move(self._by_label[label], key, template.labels[label], None)

    def with_index_key(self, index_key: selector_index.IndexKey) -> AbstractSet[str]:
        """Return the keys of the templates that an index key matches: by name, by one label, or all of the group."""
        closeness, name, value = index_key
        if closeness == selector_index.BY_NAME:
            if self._by_name is None:
                self._by_name = {}
                for key, template in self.keys.items():
                    _move(self._by_name, key, None, template.ref.name)
            return self._by_name.get(name, _NO_KEYS).keys()
        if not name:
            return self.keys.keys()
        if name not in self._by_label:
            by_value: _Index[str] = {}
            self._by_label[name] = by_value
            for key, template in self.keys.items():
                if name in template.labels:
                    _move(by_value, key, None, template.labels[name])
        return self._by_label[name].get(value, _NO_KEYS).keys()


class Templates:
    """The templates of a shard by kind, namespace, name and labels."""

    def __init__(self) -> None:
        self._by_key: dict[str, Template] = {}
        self._groups: dict[tuple[str, str], dict[str, _Group]] = {}

    def of_kind(self, api_version: str, kind: str) -> Iterator[str]:
        """Return the keys of all templates of a kind."""
        return (key for group in self._groups.get((api_version, kind), {}).values() for key in group.keys)

    def in_namespace(self, namespace: str) -> Iterator[str]:
        """Return the keys of all templates in a namespace."""
        groups = self._in_scope((namespace, selector_index.ANY, selector_index.ANY))
        return (key for group in groups for key in group.keys)

    def selected(self, selection: selector_index.Selection) -> set[str]:
        """Return the keys of the templates that a policy selects."""
        selected: set[str] = set()
        for scope, index_key, cell in selection.cells():
            for group in self._in_scope(scope):
                for key in group.with_index_key(index_key):
                    if key not in selected and selector_index.is_met(cell, group.keys[key]):
                        selected.add(key)
        return selected

    def put(self, key: str, new: Template | None) -> None:
        """Set the template of a key; None means no template."""
        old = self._by_key.get(key)
        # Templates are replaced, never changed, so identity shows a change without comparing their labels.
        if old is new:
            return
        if old is not None:
            del self._by_key[key]
            groups = self._groups[old.ref.api_version, old.ref.kind]
            group = groups[old.ref.namespace]
            group.remove(key)
            if not group.keys:
                del groups[old.ref.namespace]
            if not groups:
                del self._groups[old.ref.api_version, old.ref.kind]
        if new is not None:
            self._by_key[key] = new
            groups = self._groups.setdefault((new.ref.api_version, new.ref.kind), {})
            groups.setdefault(new.ref.namespace, _Group()).add(key, new)

    def _in_scope(self, scope: selector_index.Scope) -> Iterator[_Group]:
        namespace, api_version, kind = scope
        kinds = [self._groups.get((api_version, kind), {})] if kind else self._groups.values()
        for groups in kinds:
            if namespace == selector_index.ANY:
                yield from groups.values()
            elif namespace in groups:
                yield groups[namespace]


class Indexes:
    """Keys of the shard's bindings and clusters, by the facts that affect them.

    - ``by_cluster``: bindings that are assigned to a cluster, have a work there or are being evicted from it.
    - ``by_policy``: bindings that a policy claims; ``by_group``: these bindings by placement digest and affinity group.
    - ``blocked``: bindings whose scheduling failed and is to be retried; ``unready``: blocked bindings that no changed
      fact has made ready to retry yet.
    - ``unranked``: bindings with a refused policy or a missing PriorityClass.
    - ``unfit``: claimed bindings that fit in no cluster.
    - ``not_ready_clusters``: the shard's own clusters that are not ready.
    """

    def __init__(self, bindings: Iterable[Binding] = (), watches: Iterable[Watch] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        self.by_cluster: _Index[str] = {}
        self.by_policy: _Index[PolicyRef] = {}
        self.by_group: _Index[tuple[str, str]] = {}
        self.templates = Templates()
        self.blocked: set[str] = set()
        self.unready: set[str] = set()
        self.unranked: set[str] = set()
        self.unfit: set[str] = set()
        self.not_ready_clusters: set[str] = set()
        for binding in bindings:
            self.update(binding.key, binding)
        for watch in watches:
            self.health_reported(watch)

    def health_reported(self, watch: Watch) -> None:
        """Add a watch's key to ``not_ready_clusters`` if its status is neither empty nor READY; otherwise remove it."""
        if watch.status in ("", READY):
            self.not_ready_clusters.discard(watch.key)
        else:
            self.not_ready_clusters.add(watch.key)

    def update(self, key: str, binding: Binding | None) -> None:
        """Update the indexes to a binding's current state; None if it was deleted."""
        # Not a field of ``_Entry``, because a capacity report changes ``unready`` directly (``affected_keys``).
        is_unready = binding is not None and binding.blocked and not binding.ready_to_retry
        _put(self.unready, key, is_member=is_unready)
        self.templates.put(key, binding.template if binding else None)
        old = self._entries.get(key, _NOTHING)
        new = shared(_entry(binding)) if binding else _NOTHING
        if old == new:
            return
        if old.clusters != new.clusters:
            _move_all(self.by_cluster, key, old.clusters, new.clusters)
        if old.policy != new.policy:
            _move(self.by_policy, key, old.policy, new.policy)
        if old.group != new.group:
            _move(self.by_group, key, old.group, new.group)
        _put(self.blocked, key, is_member=new.blocked)
        _put(self.unranked, key, is_member=new.unranked)
        _put(self.unfit, key, is_member=new.unfit)
        if new == _NOTHING:
            del self._entries[key]
        else:
            self._entries[key] = new


def _entry(binding: Binding) -> _Entry:
    clusters = {name for name, _ in binding.clusters}
    clusters.update(binding.works, (task.cluster for task in binding.tasks))
    claim = binding.claim
    # Positional arguments: this runs twice for each decision, and keywords are slower.
    return _Entry(
        shared(frozenset(clusters)),
        claim.policy if claim else None,
        (claim.placement, binding.affinity) if claim else None,
        binding.blocked,
        binding.refused is not None or (binding.rank is not None and bool(binding.rank.fault)),
        claim is not None and binding.condition == NO_CLUSTER_FIT,
    )


def _put(keys: set[str], key: str, *, is_member: bool) -> None:
    if is_member:
        keys.add(key)
    else:
        keys.discard(key)


def _move(index: _Index[_Term], key: str, old: _Term | None, new: _Term | None) -> None:
    _move_all(index, key, _as_set(old), _as_set(new))


def _move_all(index: _Index[_Term], key: str, old: frozenset[_Term], new: frozenset[_Term]) -> None:
    for term in old - new:
        index[term].pop(key, None)
        if not index[term]:
            del index[term]
    for term in new - old:
        index.setdefault(term, {})[key] = None


def _as_set(term: _Term | None) -> frozenset[_Term]:
    return frozenset() if term is None else frozenset((term,))
