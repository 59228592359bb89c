"""Dependency distribution (``propagateDeps``), dependency side: apply the needs of other bindings to an object.

A needed object gets a binding even if no policy selects it. The object is dispatched to the clusters that its policy
assigns and to those in which other bindings need it. A need for an object that does not exist yet is kept in the state.
A binding that exists for needs only is withdrawn with the last of them. An object without policy takes over existing
objects, or is preserved when it is deleted, if one of the dependent bindings requests that.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.deciders import needs as all_needs
from engine.deciders import propagation, record_sizes
from engine.deciders.state import NOT_NEEDED, Binding, Need, ShardState, Template
from engine.deciders.step_outputs import Outputs, View
from events import decisions, keys

NO_CLUSTERS: Final[frozenset[str]] = frozenset()
NOT_REQUIRED: Final = "NotRequired"
"""Reason to withdraw the binding of an object that exists, but has no policy and no needs any longer."""

_CLUSTERS_MAX: Final = 4_096
"""Maximum number of bindings and clusters in one decision, which bounds its record; a single need may exceed it."""


def decide(binding: Binding, view: View) -> Outputs[frozenset[str]]:
    """Record changed needs of other bindings; return the clusters in which dropped needs leave the object running."""
    needs, template = all_needs.of(view.shard, binding.key), binding.template
    if needs is None or template is None:
        return NO_CLUSTERS
    examined = needs.changed if needs.ref == template.ref else needs.keys()
    preserved = frozenset(
        name
        for need in map(needs.__getitem__, examined)
        if need.preserved and not need.terms.clusters
        for name in need.applied.clusters
    )
    is_required = any(need.terms.clusters and need.ref == template.ref for need in needs.values())
    if is_required:
        yield from propagation.declare(binding, template, view)
    if binding.declared is None:
        return NO_CLUSTERS
    needs.ref = template.ref
    changed = tuple(_changed(needs, sorted(examined), template))
    sizes = (len(requirer.clusters) + 1 for requirer in changed)
    for portion in record_sizes.split(changed, sizes, _CLUSTERS_MAX):
        yield decisions.BindingRequired(key=binding.key, required_by=portion)
    if changed and not is_required and binding.claim is None and not (binding.clusters or binding.tasks):
        yield decisions.BindingWithdrawn(key=binding.key, reason=NOT_REQUIRED)
    return preserved


def clusters(shard: ShardState, key: str) -> frozenset[str]:
    """Return the clusters in which other bindings need the object with this key, as of the last decisions."""
    needs = all_needs.of(shard, key)
    return NO_CLUSTERS if needs is None else needs.applied()


def targets(shard: ShardState, binding: Binding) -> frozenset[str]:
    """Return the clusters in which the binding is to run: its assigned ones, and those where other bindings need it."""
    return clusters(shard, binding.key).union(name for name, _ in binding.clusters)


def _changed(
    needs: Mapping[str, Need], examined: Iterable[str], template: Template
) -> Iterator[decisions.RequiredBy]:
    for by in examined:
        need = needs[by]
        terms = need.terms if need.ref == template.ref else NOT_NEEDED
        if terms != need.applied:
            namespace, name = keys.split(by)
            yield decisions.RequiredBy(
                namespace=namespace,
                name=name,
                clusters=terms.clusters,
                overwrites=terms.overwrites,
                preserves=terms.preserves,
            )
