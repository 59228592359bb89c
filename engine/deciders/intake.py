"""Fold inputs into a shard's state and queue the keys that they touch.

This half of a step decides nothing and needs no facts; recovery repeats it. ``waiting_keys`` has the order in which
the queued keys are decided.
"""

from sys import intern
from typing import Final

import msgspec

from engine.deciders import (
    apply_decisions,
    group_ledgers,
    needs,
    quota_ledgers,
    required_bindings,
    sharing,
    waiting_keys,
)
from engine.deciders import state as states
from engine.deciders.state import Binding, Cause, Need, Rebalancer, Report, ShardState, Template
from engine.domain import marks
from engine.domain.bindings import Suspension
from engine.domain.rebalancers import Observed
from engine.objects import dependencies, priorities, workloads
from engine.shared_values import shared
from events import health, imported_placements, kube_objects, links, shapes, specs, status_values, topics
from events.validation import verdicts


class _RebalancerSpec(msgspec.Struct, frozen=True, rename="camel"):
    workloads: tuple[shapes.WorkloadRef, ...] = ()
    ttl_seconds_after_finished: int | None = None


class _RebalancerManifest(msgspec.Struct, frozen=True):
    spec: _RebalancerSpec = _RebalancerSpec()


_REBALANCER: Final = msgspec.json.Decoder(_RebalancerManifest)


def take(shard: ShardState, taken: verdicts.Taken) -> None:
    """Fold one input of the shard's own partitions."""
    match taken.data:
        case specs.TemplateApplied(manifest=raw) if taken.manifest and taken.head:
            _apply_template(shard, taken, taken.manifest, taken.head, raw)
        case specs.TemplateDeleted(orphans=orphans):
            binding = shard.bindings.get(taken.record.key)
            if binding is not None:
                binding.template = None
                enqueue(shard, binding.key, states.SPEC | states.ORPHANED if orphans else states.SPEC, taken)
        case specs.RebalancerApplied(manifest=raw) if taken.manifest and taken.head:
            _apply_rebalancer(shard, taken, taken.manifest, taken.head, raw)
        case specs.DeletionAllowed(cluster=cluster):
            _allow_deletion(shard, taken, cluster)
        case specs.SuspensionWritten() as written:
            _take_suspension(shard, taken, written)
        case specs.TemplateStatusWritten():
            pass  # The status that a client writes to a template affects no decision.
        case specs.RebalancerDeleted():
            shard.rebalancers.pop(taken.record.key, None)
        case health.WorkloadReported() as report:
            _take_report(shard, taken, report)
        case health.WorkloadGone() as confirmation:
            _take_removal(shard, taken, confirmation)
        case _:
            _take_link(shard, taken)


def enqueue(shard: ShardState, key: str, flags: int, taken: verdicts.Taken) -> None:
    """Queue a key to be decided, with the input ``taken`` as the cause."""
    envelope = taken.envelope
    story = envelope.correlationid or envelope.id
    waiting_keys.enqueue(
        shard, key, flags, Cause(str(taken.record.position), story, envelope.trace, taken.at_ms)
    )


def _apply_template(
    shard: ShardState,
    taken: verdicts.Taken,
    manifest: kube_objects.Manifest,
    head: verdicts.Head,
    raw: msgspec.Raw,
) -> None:
    built_in = workloads.is_built_in(manifest.api_version, manifest.kind)
    key = shared(taken.record.key)
    binding = shard.bindings.get(key)
    if binding is None:
        binding = shard.bindings[key] = Binding(key=key)
    imported, previous = imported_placements.read(manifest.metadata.annotations), binding.template
    template = Template(
        ref=manifest.reference,
        labels=manifest.metadata.labels,
        uid=head.uid,
        generation=head.generation,
        offset=taken.record.offset,
        digest=kube_objects.manifest_digest(raw),
        size=shared(workloads.size(manifest.api_version, manifest.kind, raw)),
        custom=b"" if built_in or not status_values.is_custom(manifest.api_version) else bytes(raw),
        dependencies=dependencies.dependencies(
            manifest.api_version, manifest.kind, manifest.metadata.namespace, raw
        ),
        priority_class=priorities.read(manifest.api_version, manifest.kind, raw),
        overwrites=manifest.metadata.annotations.get(marks.CONFLICT_RESOLUTION) == marks.OVERWRITE,
        imported=imported,
        is_imported=imported is not None
        and (previous is None or previous.is_imported or previous.imported != imported),
    )
    binding.template = sharing.compact_template(template)
    enqueue(shard, binding.key, states.SPEC, taken)


def _apply_rebalancer(
    shard: ShardState,
    taken: verdicts.Taken,
    manifest: kube_objects.Manifest,
    head: verdicts.Head,
    raw: msgspec.Raw,
) -> None:
    key = taken.record.key
    spec = kube_objects.decoded(_REBALANCER.decode, raw).spec
    distinct = {ref.sort_key: ref for ref in spec.workloads}
    workloads_wanted = tuple(distinct[order] for order in sorted(distinct))
    rebalancer = shard.rebalancers.get(key)
    if rebalancer is None or rebalancer.uid != head.uid:
        shard.rebalancers[key] = Rebalancer(
            key=key,
            name=manifest.metadata.name,
            uid=head.uid,
            generation=head.generation,
            created_ms=head.created_ms,
            edited_ms=taken.at_ms,
            version=head.version,
            workloads=workloads_wanted,
            ttl_seconds=spec.ttl_seconds_after_finished,
        )
    else:
        rebalancer.generation = head.generation
        rebalancer.version = head.version
        rebalancer.edited_ms = max(rebalancer.edited_ms, taken.at_ms)
        rebalancer.workloads = workloads_wanted
        rebalancer.ttl_seconds = spec.ttl_seconds_after_finished
        rebalancer.expired = False
    enqueue(shard, key, states.SPEC, taken)


def _allow_deletion(shard: ShardState, taken: verdicts.Taken, cluster: str) -> None:
    """Allow the deletion of a work that its eviction has suppressed; the eviction then ends in this step.

    Evictions by preemption (``held``) are not affected: the work is deleted already, and such an eviction only keeps
    the binding out of the cluster.
    """
    binding = shard.bindings.get(taken.record.key)
    tasks = binding.tasks if binding else ()
    if binding is None or not any(task.cluster == cluster and not task.held for task in tasks):
        return
    binding.tasks = tuple(
        msgspec.structs.replace(task, suppress_deletion=False) if task.cluster == cluster else task
        for task in tasks
    )
    enqueue(shard, binding.key, states.REQUESTED, taken)


def _take_suspension(shard: ShardState, taken: verdicts.Taken, written: specs.SuspensionWritten) -> None:
    binding = shard.bindings.get(taken.record.key)
    if binding is not None:
        scheduling, dispatching = written.scheduling, written.dispatching
        before = binding.suspending or binding.suspension
        binding.suspending = Suspension(
            before.scheduling if scheduling is None else scheduling,
            before.dispatching if dispatching is None else dispatching,
        )
        enqueue(shard, binding.key, states.REQUESTED, taken)


def _take_report(shard: ShardState, taken: verdicts.Taken, report: health.WorkloadReported) -> None:
    binding = shard.bindings.get(report.key)
    work = binding.works.get(report.cluster) if binding else None
    previous = binding.reports.get(report.cluster) if binding else None
    version = (report.term, report.step)
    newest = (previous.term, previous.step) if previous else (0, 0)
    if binding is None or work is None or version < max(work.first, newest):
        return
    applied = previous.template_generation if previous else 0
    if version == (work.term, work.step) and not report.fault:
        applied = work.generation
    binding.reports[intern(report.cluster)] = sharing.shared_report(
        Report(
            report.term,
            report.step,
            report.replicas,
            report.updated,
            report.ready,
            report.available,
            report.healthy,
            previous.unhealthy_ms if previous and not report.healthy else 0,
            report.fault,
            report.values or sharing.NOTHING,
            report.generation,
            report.observed_generation,
            applied,
            report.status,
        )
    )
    enqueue(shard, report.key, states.HEALTH, taken)


def _take_removal(shard: ShardState, taken: verdicts.Taken, confirmation: health.WorkloadGone) -> None:
    version = confirmation.term, confirmation.step
    removal = shard.removals.get(confirmation.cluster, {}).get(confirmation.key)
    binding = shard.bindings.get(confirmation.key)
    if removal is not None and version >= removal.version:
        apply_decisions.forget_removal(shard, confirmation.cluster, confirmation.key)
        if binding and removal.is_withdrawn and _lacks_work(shard, binding, confirmation.cluster):
            enqueue(shard, confirmation.key, states.HEALTH, taken)
    previous = binding.reports.get(confirmation.cluster) if binding else None
    if binding and previous and version >= (previous.term, previous.step):
        del binding.reports[confirmation.cluster]
        enqueue(shard, confirmation.key, states.HEALTH, taken)


def _lacks_work(shard: ShardState, binding: Binding, cluster: str) -> bool:
    """Whether a cluster of the binding has no work yet, because the removal of an earlier work is not confirmed."""
    return cluster not in binding.works and cluster in required_bindings.targets(shard, binding)


def _take_link(shard: ShardState, taken: verdicts.Taken) -> None:
    match taken.data:
        case links.RescheduleRequested() as reschedule:
            binding = shard.bindings.setdefault(reschedule.key, Binding(key=reschedule.key))
            binding.reschedule_requests = (*binding.reschedule_requests, reschedule)
            enqueue(shard, reschedule.key, states.REQUESTED, taken)
        case links.RescheduleAnswered() as answer:
            _take_answer(shard, taken, answer)
        case links.DependencyNeeded() | links.DependencyDropped() as link:
            _take_need(shard, taken, link)
        case links.CapacityRequested() | links.CapacityOffered() | links.PreemptionRequested() as link:
            _take_preemption_link(shard, taken, link)
        case links.ClusterCleared() as link:
            _take_clearance(shard, link)
        case links.QuotaRequested() | links.QuotaAnswered() as link:
            _take_quota_link(shard, taken, link)
        case links.GroupRequested() | links.GroupAnswered() as link:
            is_newest = (
                group_ledgers.take(shard, link)
                if isinstance(link, links.GroupRequested)
                else group_ledgers.answer(shard, link)
            )
            if is_newest:
                enqueue(shard, taken.record.key, states.GROUP, taken)
        case _:
            message = f"{type(taken.data).__name__} is not an input of a shard"
            raise TypeError(message)


def _take_answer(shard: ShardState, taken: verdicts.Taken, answer: links.RescheduleAnswered) -> None:
    rebalancer = shard.rebalancers.get(taken.record.key)
    if rebalancer is None or rebalancer.uid != answer.uid:
        return
    observed = Observed(answer.workload, answer.generation, answer.result, answer.reason)
    rebalancer.answers.append(observed)
    enqueue(shard, rebalancer.key, states.REQUESTED, taken)


def _take_need(
    shard: ShardState, taken: verdicts.Taken, link: links.DependencyNeeded | links.DependencyDropped
) -> None:
    """Fold a link by which a binding declares or drops its need for an object.

    Ignore a link that is not newer than the binding's last one, and a link that drops an unknown need.
    """
    key = taken.record.key
    is_needed = isinstance(link, links.DependencyNeeded)
    all_needs = needs.of(shard, key)
    previous = all_needs.get(link.by) if all_needs else None
    if link.number <= previous.number if previous else not is_needed:
        return
    need = Need(
        ref=link.dependency,
        number=link.number,
        terms=_terms(link),
        preserved=isinstance(link, links.DependencyDropped) and link.preserved,
        applied=previous.applied if previous else states.NOT_NEEDED,
    )
    needs.put(shard, key, link.by, need)
    enqueue(shard, key, states.REQUIRED, taken)


def _terms(link: links.DependencyNeeded | links.DependencyDropped) -> states.Terms:
    if isinstance(link, links.DependencyDropped):
        return states.NOT_NEEDED
    return states.Terms(tuple(sorted(set(link.clusters))), link.overwrites, link.preserves)


def _take_preemption_link(
    shard: ShardState,
    taken: verdicts.Taken,
    link: links.CapacityRequested | links.CapacityOffered | links.PreemptionRequested,
) -> None:
    """Fold a preemption link.

    Only the newest capacity request of a binding is kept, and offers that do not answer it are ignored. The binding
    is decided once all shards have answered.
    """
    match link:
        case links.CapacityRequested():
            previous = shard.unanswered_requests.get(link.key)
            if previous is None or previous.number < link.number:
                shard.unanswered_requests[link.key] = link
                enqueue(shard, taken.record.key, states.REQUESTED, taken)
        case links.CapacityOffered():
            request = shard.capacity_requests.get(link.key)
            if (
                request is None
                or request.is_decided
                or request.number != link.number
                or link.shard >= topics.SHARDS
            ):
                return
            request.offers[link.shard] = link.occupants
            if len(request.offers) == topics.SHARDS:
                enqueue(shard, link.key, states.REQUESTED, taken)
        case links.PreemptionRequested():
            shard.preemptions.setdefault(link.key, []).append(link)
            enqueue(shard, link.key, states.REQUESTED, taken)


def _take_quota_link(
    shard: ShardState, taken: verdicts.Taken, link: links.QuotaRequested | links.QuotaAnswered
) -> None:
    """Fold a claim on overall quotas, or the answer to the newest claim of a binding."""
    key = taken.record.key
    if isinstance(link, links.QuotaRequested):
        is_newest = quota_ledgers.take(shard, key, link)
    else:
        claim = shard.quota_claims.get(key)
        is_newest = claim is not None and claim.number == link.number and not claim.is_granted
        if claim is not None and is_newest:
            claim.is_granted, claim.fault = not link.fault, link.fault
    if is_newest:
        enqueue(shard, key, states.QUOTA, taken)


def _take_clearance(shard: ShardState, cleared: links.ClusterCleared) -> None:
    departure = shard.departures.get(cleared.cluster)
    if departure is not None and cleared.shard < topics.SHARDS:
        departure.cleared[cleared.shard] = cleared.uid
