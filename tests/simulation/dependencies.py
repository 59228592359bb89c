"""What workloads need, in a simulated world: at rest each object is where somebody needs it, and nowhere else.

Judged by what the templates say and where the workloads are, not by what the engine noted of needs.
"""

from collections import defaultdict
from collections.abc import Iterator

from engine.deciders.state import Binding
from events import keys
from tests.simulation import world


def check(played: world.World) -> list[str]:
    """The objects that are missing somewhere, or were left behind."""
    bindings = {key: each for fold in played.worker.folds for key, each in fold.state.bindings.items()}
    needed: defaultdict[str, set[str]] = defaultdict(set)
    for binding in bindings.values():
        for key in _needs(binding):
            needed[key] |= _targets(binding)
    return [
        f"dependencies: {key} is in {sorted(binding.works)}, needed in {sorted(needed[key])}"
        for key, binding in bindings.items()
        if binding.template is not None
        and not needed[key] <= binding.works.keys() <= needed[key] | _targets(binding)
    ]


def _needs(binding: Binding) -> Iterator[str]:
    """The keys of what a workload needs; one that was given up by its policy keeps what it was given."""
    if binding.claim is None:
        for ref in binding.distributed.dependencies if binding.distributed else ():
            yield keys.binding_key(ref.kind, ref.namespace, ref.name)
    elif binding.claim.propagate_deps and binding.template is not None:
        for each in binding.template.dependencies:
            yield keys.binding_key(each.kind, each.namespace, each.name)


def _targets(binding: Binding) -> set[str]:
    """Where a binding is by itself, and where it is still leaving."""
    leaving = {task.cluster for task in binding.tasks if task.purge_mode != "Directly"}
    return {name for name, _ in binding.clusters} | leaving
