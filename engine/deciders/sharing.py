"""Keep one object for equal values of many bindings, since bindings take most of a shard's memory."""

from collections.abc import Iterable
from sys import intern
from typing import Final

from msgspec import structs

from engine.deciders.state import Binding, Declared, Dispatched, Report, ShardState, Template
from engine.shared_values import shared, shared_labels, shared_ref
from events.validation.verdicts import Head, PartitionState

NOTHING: Final[dict[str, str]] = {}
"""The empty dictionary that fields without entries share; dictionaries in frozen structs are never changed."""


def compact_shard(state: ShardState, inputs: Iterable[PartitionState]) -> None:
    """Replace equal values in a decoded shard by one object; decoding made an object for each occurrence."""
    # Copies: a decoded Raw is a view of the whole encoded shard and would keep it in memory.
    state.placements = {digest: placement.copy() for digest, placement in state.placements.items()}
    for binding in state.bindings.values():
        if binding.template is not None:
            binding.template = compact_template(binding.template)
        for cluster, work in binding.works.items():
            binding.works[cluster] = _work(work, binding.template)
        for cluster, report in binding.reports.items():
            binding.reports[cluster] = shared_report(structs.replace(report, values=report.values or NOTHING))
        compact(binding)
    state.bindings = {binding.key: binding for binding in state.bindings.values()}
    for partition in inputs:
        partition.heads = {
            key if binding is None else binding.key: _head(head, binding)
            for key, head in partition.heads.items()
            for binding in (state.bindings.get(key),)
        }


def compact_template(template: Template) -> Template:
    """Return the template with reference, labels and digest replaced by equal objects of other templates."""
    return structs.replace(
        template,
        ref=shared_ref(template.ref),
        labels=shared_labels(template.labels),
        digest=shared(template.digest),
    )


def shared_report(report: Report) -> Report:
    """Return a shared report; a report with details of a workload is not shared, since hardly any other equals it."""
    return report if report.values or report.status or report.fault else shared(report)


def _work(work: Dispatched, template: Template | None) -> Dispatched:
    """Return a shared work that uses the template's object for an equal digest, and NOTHING for empty labels."""
    digest = work.digest
    if template is not None and template.digest == digest:
        digest = template.digest
    return shared(
        structs.replace(work, digest=digest, labels=work.labels or NOTHING, first=shared(work.first))
    )


def _head(head: Head, binding: Binding | None) -> Head:
    template = None if binding is None else binding.template
    return structs.replace(
        head,
        uid=template.uid if template is not None and template.uid == head.uid else head.uid,
        name=template.ref.name if template is not None and template.ref.name == head.name else head.name,
        api_version=intern(head.api_version),
        kind=intern(head.kind),
    )


def compact(binding: Binding) -> None:
    """Replace a binding's values by equal objects of other bindings or of its template."""
    if binding.claim is not None:
        binding.claim = shared(binding.claim)
    binding.applied = intern(binding.applied)
    binding.condition = intern(binding.condition)
    binding.clusters = shared(tuple(shared(target) for target in binding.clusters))
    template = binding.template
    if template is not None and (size := shared(template.size)) is not template.size:
        template = binding.template = structs.replace(template, size=size)
    if binding.declared is not None and template is not None:
        binding.declared = _with_template_objects(binding.declared, template)


def _with_template_objects(declared: Declared, template: Template) -> Declared:
    """Return the declaration with the template's objects in place of equal ones."""
    if declared.ref is template.ref:
        return declared
    return structs.replace(
        declared,
        ref=template.ref if declared.ref == template.ref else declared.ref,
        uid=template.uid if declared.uid == template.uid else declared.uid,
        digest=template.digest if declared.digest == template.digest else declared.digest,
        requests=template.size.requests if declared.requests == template.size.requests else declared.requests,
    )
