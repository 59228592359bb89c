"""Bindings that others depend on: they show the uids and the replicas of their dependents.

A change of a dependent changes the rendered bindings of its dependencies, which then get its number.
"""

from events import shapes
from projections.bindings import Binding, Bindings
from projections.changed_objects import ChangedObjects
from projections.keys import Keys


def shown(binding: Binding | None) -> object:
    """Return the parts of a binding that the bindings of its dependencies show; an immutable value."""
    if binding is None:
        return None
    return binding.uid, binding.clusters if binding.replicas is not None else ()


class Dependents:
    """Finds the dependents of bindings, and records the changes of the bindings that show them."""

    def __init__(self, keys_known: Keys, bindings: Bindings, changed: ChangedObjects) -> None:
        self._keys = keys_known
        self._bindings = bindings
        self._changed = changed

    def of(self, binding: Binding) -> dict[str, Binding]:
        """Return the bindings that depend on a binding's template, by their keys."""
        dependents = ((key, self._bindings.get(self._keys.of(key))) for key in sorted(binding.required))
        return {key: dependent for key, dependent in dependents if dependent is not None}

    def changed(self, key: str, number: int, needed: tuple[shapes.WorkloadRef, ...], seen: object) -> None:
        """Mark the bindings of a binding's dependencies as changed by a record, if they show the binding differently.

        ``key`` is the binding's, ``number`` the record's. Before the record, the binding had the dependencies
        ``needed``, and their bindings showed ``seen`` (see ``shown``).
        """
        binding = self._bindings.get(self._keys.of(key))
        current = () if binding is None else binding.dependencies
        refs = list(needed) if needed and shown(binding) != seen else []
        if current is not needed:
            # Dependencies that the binding has again: their bindings did not follow its changes in between. They may
            # have shown it all the time, if their shard has not decided on the drop yet.
            known = frozenset(needed)
            refs += [ref for ref in current if ref not in known]
        for ref in refs:
            key_id = self._keys.of(ref.binding_key)
            if self._bindings.touch(key_id, key, number):
                self._changed.binding_changed(key_id, number, added=False)
