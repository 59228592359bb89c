"""Bindings that others depend on. When rendered, they contain the uids and the replicas of their dependents.

So a change of a dependent also changes the rendered bindings of its dependencies, which get the number of the change.
"""

from events import shapes
from projections.bindings import Binding, Bindings
from projections.changed_objects import ChangedObjects
from projections.keys import Keys


def shown(binding: Binding | None) -> object:
    """Return the parts of a binding that the rendered bindings of its dependencies contain; an immutable value."""
    if binding is None:
        return None
    return binding.uid, binding.clusters if binding.replicas is not None else ()


class Dependents:
    """Finds the dependents of bindings, and marks bindings as changed that render a changed dependent."""

    def __init__(self, keys_known: Keys, bindings: Bindings, changed: ChangedObjects) -> None:
        self._keys = keys_known
        self._bindings = bindings
        self._changed = changed

    def of(self, binding: Binding) -> dict[str, Binding]:
        """Return the bindings that depend on a binding's template, by their keys."""
        dependents = ((key, self._bindings.get(self._keys.of(key))) for key in sorted(binding.required))
        return {key: dependent for key, dependent in dependents if dependent is not None}

    def changed(self, key: str, number: int, needed: tuple[shapes.WorkloadRef, ...], seen: object) -> None:
        """Mark the bindings on which the binding ``key`` depends as changed, if they render this binding differently.

        Record ``number`` changed the binding ``key``. Before that it had the dependencies ``needed``, and ``shown``
        returned ``seen`` for it.
        """
        binding = self._bindings.get(self._keys.of(key))
        current = () if binding is None else binding.dependencies
        refs = list(needed) if needed and shown(binding) != seen else []
        if current is not needed:
            # Also mark new dependencies. A dependency that was removed and added again got no change of this binding in
            # between. It may still render the binding, if the dependency's shard has not decided on the removal yet.
            known = frozenset(needed)
            refs += [ref for ref in current if ref not in known]
        for ref in refs:
            key_id = self._keys.of(ref.binding_key)
            if self._bindings.touch(key_id, key, number):
                self._changed.binding_changed(key_id, number, added=False)
