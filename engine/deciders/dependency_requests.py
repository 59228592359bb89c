"""Dependency distribution (``propagateDeps``), workload side: request the dependencies of a workload in its clusters.

When the clusters or the references of a workload change, its shard sends a link to the shard of each dependency, with
all clusters in which the workload needs it. A cluster from which the workload is evicted gracefully is included until
the eviction ends. Links contain no replicas, so scaling a workload sends no link. A workload that no policy claims any
longer keeps its requests.
"""

import msgspec

from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Template
from engine.deciders.step_outputs import Outputs, View
from engine.objects import dependencies, interpreters
from events import decisions, enums, json_paths, kube_objects, limits, links, shapes, vocabulary
from events.validation import names


def decide(binding: Binding, view: View, *, preserved: bool = False) -> Outputs[None]:
    """Send a link for each dependency that was added or dropped, or whose clusters or policy settings changed.

    With ``preserved`` the workload is deleted but left running in its clusters, together with its dependencies.
    """
    previous = binding.distributed
    previous_refs = previous.dependencies if previous else ()
    clusters = _clusters(binding, view.facts)
    refs = _current_dependencies(binding, view.facts, previous_refs) if clusters else ()
    clusters = clusters if refs else ()
    claim = binding.last_claim if refs else None
    distributed = decisions.DependenciesDistributed(
        key=binding.key,
        dependencies=refs,
        clusters=clusters,
        overwrites=claim is not None and claim.conflict_resolution == enums.ConflictResolution.OVERWRITE,
        preserves=claim is not None and bool(claim.preserve_on_deletion),
    )
    has_same_terms = previous is not None and previous == msgspec.structs.replace(
        distributed, dependencies=previous_refs
    )
    if refs == previous_refs and (previous is None or has_same_terms):
        return
    yield distributed
    unchanged = frozenset(previous_refs if has_same_terms else ())
    for ref in refs:
        if ref not in unchanged:
            yield links.DependencyNeeded(
                dependency=ref,
                by=binding.key,
                number=view.step,
                clusters=clusters,
                overwrites=distributed.overwrites,
                preserves=distributed.preserves,
            )
    kept = frozenset(refs)
    for ref in previous_refs:
        if ref not in kept:
            yield links.DependencyDropped(
                dependency=ref, by=binding.key, number=view.step, preserved=preserved
            )


def _current_dependencies(
    binding: Binding, facts: Facts, previous_refs: tuple[shapes.WorkloadRef, ...]
) -> tuple[shapes.WorkloadRef, ...]:
    """Return the dependencies of the workload; if no policy claims it any longer, those of the last decision."""
    claim, template = binding.claim, binding.template
    if binding.declared is None or template is None:
        return ()
    if claim is None:
        return previous_refs
    if not claim.propagate_deps:
        return ()
    interpreter = facts.interpreter(template.ref)
    declared = _declared_dependencies(template, interpreter.spec) if interpreter else ()
    # The write API refuses longer lists; if another producer wrote one, the first entries are used.
    return (*template.dependencies, *declared)[: limits.DEPENDENCIES_MAX]


def _declared_dependencies(
    template: Template, spec: interpreters.Interpretation
) -> tuple[shapes.WorkloadRef, ...]:
    """Return the dependencies that a custom kind's interpreter finds, except those in ``template.dependencies``."""
    namespace = template.ref.namespace
    if not (spec.dependencies or spec.pod_spec_paths) or not template.custom:
        return ()
    value: object = kube_objects.decoded(msgspec.json.decode, template.custom)
    referenced = {
        shapes.WorkloadRef(
            api_version=dependency.api_version, kind=dependency.kind, namespace=namespace, name=name
        )
        for dependency in spec.dependencies
        for name in json_paths.values_at(value, dependency.names_path)
        if isinstance(name, str) and names.is_dns_name(name)
    }
    for pod in interpreters.pod_specs(value, spec) if namespace else ():
        referenced.update(dependencies.of_pod(namespace, pod))
    return dependencies.ordered(referenced.difference(template.dependencies))


def _clusters(binding: Binding, facts: Facts) -> tuple[str, ...]:
    """Return the members to which the workload is assigned or from which it is being evicted gracefully."""
    leaving = (task.cluster for task in binding.tasks if task.purge_mode != vocabulary.PURGE_DIRECTLY)
    named = {*(name for name, _ in binding.clusters), *leaving}
    # If scheduling failed, the binding may still name a cluster that is no longer a member; leave such a cluster out.
    return tuple(sorted(name for name in named if facts.fleet.get(name) is not None))
