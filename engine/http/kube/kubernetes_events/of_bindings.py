"""Kubernetes Events about bindings and templates, from the decisions in the log.

Reasons, messages and reporters are Karmada's.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.domain import bindings as domain
from engine.http import summaries
from engine.http.kube.kubernetes_events.subjects import (
    NORMAL,
    WARNING,
    Message,
    ObjectMessage,
    Subjects,
    of_binding,
    of_ref,
    of_template,
)
from events import decisions, health, keys, preemption_decisions, shapes, works
from events.records import StoredRecord
from projections.bindings import Binding

_DETECTOR: Final = "resource-detector"
_SCHEDULER: Final = domain.DEFAULT_SCHEDULER
_DISTRIBUTOR: Final = "dependencies-distributor"
_EVICTORS: Final = {"TaintManager": "taint-manager"}
"""Reporters of eviction Events, by producer of the eviction task; other producers report under their own names."""


class _BindingMessage(Struct, frozen=True):
    """The text of an Event, and whether it is about the binding, the template, or both."""

    message: Message
    of_binding: bool = True
    of_template: bool = True


_Work = tuple[str, str, int, int]
"""Key, cluster, term and step of a work."""


class Overrides:
    """Outcomes of override policies, derived from the first report on the overridden work."""

    def __init__(self) -> None:
        self._awaited: dict[_Work, tuple[shapes.OverrideRef, ...]] = {}

    def take(self, data: shapes.Event) -> Iterator[tuple[bool, str]]:
        """Yield each override policy's outcome (True: applied) and a message if ``data`` is the first report on a work.

        Yield nothing for other events.
        """
        match data:
            case works.WorkApplied(overrides=overrides) if overrides:
                self._awaited[data.key, data.cluster, data.term, data.step] = overrides
            case health.WorkloadReported(cluster=cluster, fault=fault):
                overrides = self._awaited.pop((data.key, cluster, data.term, data.step), ())
                yield from _outcomes(cluster, fault, overrides)
            case _:
                return


class Bindings:
    """Derives Events from records about bindings, in log order."""

    def __init__(self, known: Subjects) -> None:
        self._subjects = known
        self._overrides = Overrides()
        self._required: dict[str, dict[str, decisions.RequiredBy]] = {}

    def take(self, record: StoredRecord, data: shapes.Event) -> Iterator[ObjectMessage]:
        """Yield the Events of the next record."""
        if isinstance(data, decisions.ClaimRefused):
            if self._subjects.has_template(data.key, data.uid):
                text = f"Apply policy({_full_name(data.policy)}) failed: {data.fault}"
                refused = Message(reason="ApplyPolicyFailed", message=text, reporter=_DETECTOR, type=WARNING)
                yield ObjectMessage(refused, of_ref(data.template, data.uid))
            return
        key: object = getattr(data, "key", None)
        binding = self._subjects.binding(key, record) if isinstance(key, str) else None
        if binding is None:
            return
        for saying in (
            *_messages(data, binding),
            *_ranked(data),
            *_overridden(data, self._overrides),
            *self._conflicts(data),
        ):
            if saying.of_binding:
                yield ObjectMessage(saying.message, of_binding(binding))
            if saying.of_template:
                yield ObjectMessage(saying.message, of_template(binding))

    def _conflicts(self, data: shapes.Event) -> Iterator[_BindingMessage]:
        """Yield an Event if the dependents of a binding differ in conflict resolution or preservation on deletion."""
        if isinstance(data, decisions.BindingWithdrawn):
            self._required.pop(data.key, None)
        if not isinstance(data, decisions.BindingRequired):
            return
        required = self._required.setdefault(data.key, {})
        data.fold(required)
        conflicts = (
            (
                "ConflictResolution conflicted (Overwrite vs Abort)",
                {need.overwrites for need in required.values()},
            ),
            (
                "PreserveResourcesOnDeletion conflicted (true vs false)",
                {need.preserves for need in required.values()},
            ),
        )
        if texts := [text for text, values in conflicts if len(values) > 1]:
            text = f"Dependency policy conflict detected: {'; '.join(texts)}."
            message = Message(
                reason="DependencyPolicyConflict", message=text, reporter=_DISTRIBUTOR, type=WARNING
            )
            yield _BindingMessage(message, of_template=False)


def _overridden(data: shapes.Event, overrides: Overrides) -> Iterator[_BindingMessage]:
    """Events of override policies; as in Karmada, success is reported on the template only."""
    for done, text in overrides.take(data):
        message = Message(
            reason=f"ApplyOverridePolicy{'Succeed' if done else 'Failed'}",
            message=text,
            reporter="override-manager",
            type=NORMAL if done else WARNING,
        )
        yield _BindingMessage(message, of_binding=not done)


def _ranked(data: shapes.Event) -> Iterator[_BindingMessage]:
    """Events about priorities and preemption."""
    match data:
        case decisions.PriorityResolved(fault=fault) if fault:  # releases before 0.5 decided this
            text = f"{fault}; until this is corrected, the scheduling priority is 0."
            yield _warning("PriorityClassNotFound", text, _DETECTOR)
        case preemption_decisions.CapacityWanted(missing=missing):
            text = f"capacity for {missing} replicas is missing: looking for bindings of lower priority to preempt."
            yield _normal("CapacityWanted", text, _SCHEDULER)
        case preemption_decisions.PreemptionDecided(victims=victims, reason=reason):
            left = "; ".join(
                f"{victim.key} in {victim.cluster} ({victim.replicas} replicas)" for victim in victims
            )
            text = (
                f"Preempted: {left}."
                if left
                else f"No binding is preempted: {summaries.NOT_PREEMPTED[reason]}."
            )
            yield _normal("PreemptionSucceed" if left else "PreemptionFailed", text, _SCHEDULER)
        case decisions.EvictionStarted(cluster=cluster, replicas=replicas, by=by) if by:
            text = f"Preempted by {by} in cluster {cluster}: {replicas} replicas are evicted."
            yield _warning("Preempted", text, _SCHEDULER)
        case _:
            return


def _scheduled(
    data: decisions.ScheduleDecided | decisions.ScheduleFailed, binding: str, *, is_namespaced: bool
) -> Iterator[_BindingMessage]:
    """An Event for each affinity group that was tried and failed, and one for the result, with Karmada's texts."""
    for group in data.failed:
        text = f"failed to schedule {binding} with clusterAffiliates index({group.index}): {group.message}"
        yield _warning("ScheduleBindingFailed", text, _SCHEDULER)
    if isinstance(data, decisions.ScheduleDecided):
        chosen = ", ".join(f"{target.name}:{target.replicas}" for target in data.clusters)
        colon = ":" if is_namespaced else ""
        text = f"Binding has been scheduled successfully. Result{colon} {{{chosen}}}"
        yield _normal("ScheduleBindingSucceed", text, _SCHEDULER)
    elif not data.failed:
        yield _warning("ScheduleBindingFailed", data.message, _SCHEDULER)


def _messages(data: shapes.Event, binding: Binding) -> Iterator[_BindingMessage]:
    ref = binding.template
    name = keys.binding_name(ref.kind, ref.name)
    kind, full_name = (
        ("ResourceBinding", f"{ref.namespace}/{name}") if ref.namespace else ("ClusterResourceBinding", name)
    )
    match data:
        case decisions.BindingDeclared(replicas=replicas) if replicas is not None:
            text = f"Get replicas({replicas}) of {ref.kind}({_full_name(ref)}) succeed."
            yield _normal("GetReplicasSucceed", text, _DETECTOR, of_binding=False)
        case decisions.ScheduleDecided() | decisions.ScheduleFailed():
            yield from _scheduled(data, f"{kind}({full_name})", is_namespaced=bool(ref.namespace))
        case decisions.BindingClaimed(policy=policy):
            text = f"Apply policy({_full_name(policy)}) succeed"
            yield _normal("ApplyPolicySucceed", text, _DETECTOR, of_binding=False)
            if data.preempted is not None:
                yield _preempted(policy, data.preempted)
            if text := domain.other_scheduler_reason(data.scheduler):
                yield _warning("NotScheduledHere", text, _DETECTOR)
        case decisions.TemplateMarked(policy=policy, preempted=preempted) if preempted is not None:
            yield _preempted(policy, preempted)
        case decisions.BindingDispatched():
            reporter = "binding-controller" if ref.namespace else "cluster-resource-binding-controller"
            yield _normal("SyncWorkSucceed", f"Sync work of {kind}({full_name}) successful.", reporter)
        case decisions.EvictionStarted(cluster=cluster, not_preserved=missing, by=""):
            lost = "".join(f" {label} is not preserved: {missing[label]}." for label in sorted(missing))
            reporter = _EVICTORS.get(data.producer, data.producer)
            text = f"Evict from cluster {cluster} succeed.{lost}"
            yield _normal("EvictWorkloadFromClusterSucceed", text, reporter)
        case decisions.DependenciesDistributed(dependencies=dependencies):
            yield from _distributed(dependencies)
        case decisions.StatusAggregated():
            yield from _aggregated(kind, full_name, ref.namespace)
        case _:
            return


def _preempted(by: shapes.PolicyRef, policy: shapes.PolicyRef) -> _BindingMessage:
    winner = f"{'Propagation' if by.namespace else 'Cluster propagation'} policy({_full_name(by)})"
    loser = f"{'propagation' if policy.namespace else 'cluster propagation'} policy({_full_name(policy)})"
    text = f"{winner} preempted {loser} successfully"
    return _normal("PreemptPolicySucceed", text, _DETECTOR, of_binding=False)


def _distributed(dependencies: Sequence[shapes.WorkloadRef]) -> Iterator[_BindingMessage]:
    refs = " ".join(
        f"{{APIVersion:{ref.api_version} Kind:{ref.kind} Namespace:{ref.namespace} Name:{ref.name} "
        "LabelSelector:<nil>}"
        for ref in dependencies
    )
    text = f"Get dependencies([{refs}]) succeed."
    yield _normal("GetDependenciesSucceed", text, _DISTRIBUTOR, of_binding=False)
    text = "Sync schedule results to dependencies succeed."
    yield _normal("SyncScheduleResultToDependenciesSucceed", text, _DISTRIBUTOR, of_template=False)


def _aggregated(kind: str, full_name: str, namespace: str) -> Iterator[_BindingMessage]:
    reporter = (
        "resource-binding-status-controller" if namespace else "cluster-resource-binding-status-controller"
    )
    reason = "AggregateStatusSucceed"
    text = f"Update {kind}({full_name}) with AggregatedStatus successfully."
    yield _normal(reason, text, reporter, of_template=False)
    text = "Update Resource with AggregatedStatus successfully."
    yield _normal(reason, text, reporter, of_binding=False)


def _full_name(ref: shapes.WorkloadRef | shapes.PolicyRef | shapes.OverrideRef) -> str:
    return keys.full_name(ref.namespace, ref.name)


def _normal(
    reason: str, text: str, reporter: str, *, of_binding: bool = True, of_template: bool = True
) -> _BindingMessage:
    return _BindingMessage(Message(reason=reason, message=text, reporter=reporter), of_binding, of_template)


def _warning(reason: str, text: str, reporter: str) -> _BindingMessage:
    return _BindingMessage(Message(reason=reason, message=text, reporter=reporter, type=WARNING))


def _outcomes(
    cluster: str, fault: str, overrides: tuple[shapes.OverrideRef, ...]
) -> Iterator[tuple[bool, str]]:
    """Yield the outcome of each override policy (True: applied) and a message; stop after a policy that failed.

    A fault that names no policy is attributed to the last policy.
    """
    for index, ref in enumerate(overrides):
        kind = "override policy" if ref.namespace else "cluster override policy"
        message = f"Apply {kind}({_full_name(ref)}) for cluster({cluster})"
        mark = f"{ref.kind} {_full_name(ref)}: "
        if fault.startswith(mark) or (fault and index + 1 == len(overrides)):
            yield False, f"{message} failed. {fault.removeprefix(mark)}"
            return
        yield True, f"{message} succeed."
