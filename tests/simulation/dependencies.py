"""Checker of dependency distribution: in a stable world each object is in the clusters that need it, and in no others.

The expectation is computed from templates and placements, not from the needs that the engine recorded.
"""

from collections import defaultdict
from collections.abc import Iterator

from engine.deciders.state import Binding
from events import keys
from tests.simulation import world


def check(played: world.World) -> list[str]:
    """Return the objects that are missing in a cluster that needs them, or left in one that does not."""
    bindings = {key: binding for fold in played.worker.folds for key, binding in fold.state.bindings.items()}
    members = set(played.worker.facts.fleet.names())
    needed: defaultdict[str, set[str]] = defaultdict(set)
    for binding in bindings.values():
        for key in _needs(binding):
            needed[key] |= _targets(binding) & members
    return [
        f"dependencies: {key} is in {sorted(binding.works)}, needed in {sorted(needed[key])}"
        for key, binding in bindings.items()
        if binding.template is not None
        and not needed[key] <= binding.works.keys() <= needed[key] | _targets(binding)
    ]


def _needs(binding: Binding) -> Iterator[str]:
    """Yield the keys that a workload needs; without a claim, those of its last distribution."""
    if binding.claim is None:
        for ref in binding.distributed.dependencies if binding.distributed else ():
            yield ref.binding_key
    elif binding.claim.propagate_deps and binding.template is not None:
        for dependency in binding.template.dependencies:
            yield keys.binding_key(dependency.kind, dependency.namespace, dependency.name)


def _targets(binding: Binding) -> set[str]:
    """Return the clusters to which a binding is assigned or from which it is being evicted."""
    leaving = {task.cluster for task in binding.tasks if task.purge_mode != "Directly"}
    return {name for name, _ in binding.clusters} | leaving
