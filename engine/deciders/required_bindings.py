"""Dependency distribution (``propagateDeps``), dependency side: apply the needs of other bindings to an object.

A needed object gets a binding even if no policy selects it, and goes to the clusters of its own policy and to
all in which it is needed. A need for an object that does not exist yet waits in the state. A binding that
exists for needs only is withdrawn with the last of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.deciders import needs as all_needs
from engine.deciders import propagation, step_outputs
from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Need, ShardState, Template
from events import decisions, keys

NOWHERE: Final[frozenset[str]] = frozenset()
_CLUSTERS_MAX: Final = 4_096
"""Maximum number of bindings and clusters in one decision, which bounds its record; a single need may exceed it."""


def decide(binding: Binding, facts: Facts, emit: step_outputs.Emitter) -> frozenset[str]:
    """Apply changed needs; return the clusters in which the object is left running although no longer needed."""
    needs, template = all_needs.known(emit.shard, binding.key), binding.template
    if needs is None or template is None:
        return NOWHERE
    looked_at = needs.changed if needs.ref == template.ref else needs.keys()
    preserved = frozenset(
        name
        for need in map(needs.__getitem__, looked_at)
        if need.preserved and not need.clusters
        for name in need.applied
    )
    is_required = any(need.clusters and need.ref == template.ref for need in needs.values())
    if is_required:
        propagation.declare(binding, template, facts, emit)
    if binding.declared is None:
        return NOWHERE
    needs.ref = template.ref
    changed = tuple(_changed(needs, sorted(looked_at), template))
    for some in _portions(changed):
        emit.decide(decisions.BindingRequired(key=binding.key, required_by=some), binding.key)
    if changed and not is_required and binding.claim is None and not (binding.clusters or binding.tasks):
        emit.decide(decisions.BindingWithdrawn(key=binding.key, reason="NotRequired"), binding.key)
    return preserved


def clusters(shard: ShardState, key: str) -> frozenset[str]:
    """Return the clusters in which others need the object with this key, as of the last decisions."""
    needs = all_needs.known(shard, key)
    return NOWHERE if needs is None else needs.applied()


def _changed(
    needs: Mapping[str, Need], looked_at: Iterable[str], template: Template
) -> Iterator[decisions.RequiredBy]:
    for by in looked_at:
        need = needs[by]
        wanted = need.clusters if need.ref == template.ref else ()
        if wanted != need.applied:
            namespace, name = keys.split(by)
            yield decisions.RequiredBy(namespace=namespace, name=name, clusters=wanted)


def _portions(changed: tuple[decisions.RequiredBy, ...]) -> Iterator[tuple[decisions.RequiredBy, ...]]:
    portion: list[decisions.RequiredBy] = []
    count = 0
    for each in changed:
        size = len(each.clusters) + 1
        if portion and count + size > _CLUSTERS_MAX:
            yield tuple(portion)
            portion, count = [], 0
        portion.append(each)
        count += size
    if portion:
        yield tuple(portion)
