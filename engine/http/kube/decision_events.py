"""Kubernetes Events derived from decisions in the log.

They are computed on request and not stored. Repeated ones about an object are merged and counted, as
``kubectl describe`` shows them. Reasons, messages and reporters are Karmada's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.http import summaries
from engine.http.kube import override_outcomes
from events import codec, decisions, keys, shapes, times
from events.json_values import Json
from events.records import StoredRecord
from projections.bindings import Binding

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_BINDING_GROUP: Final = "work.karmada.io/v1alpha2"

BindingOf = Callable[[str], Binding | None]
"""Return the binding with a key, None if the views have none."""


class Message(Struct, frozen=True, kw_only=True):
    """Reason, message and reporter of an Event; ``of_binding`` and ``of_template`` are the objects that it is about."""

    reason: str
    message: str
    reporter: str
    type: str = NORMAL
    of_binding: bool = True
    of_template: bool = True


class DecisionEvent(Struct, frozen=True, kw_only=True):
    """One Event: the object it is about (``involved``), its text, and how often and when it occurred."""

    involved: Json
    message: Message
    count: int
    first_number: int
    last_number: int
    first: str
    last: str


def happened(records: Iterable[StoredRecord], binding_of: BindingOf) -> list[DecisionEvent]:
    """Derive Events from records, merging repeated ones; ordered by their last occurrence."""
    events: dict[tuple[str, str, str, str], DecisionEvent] = {}
    overrides = override_outcomes.Overrides()
    for record in records:
        for message, involved in _messages_of_record(record, binding_of, overrides):
            time = times.to_seconds_text(times.from_text(record.headers["ce_time"]))
            identity = (str(involved["kind"]), str(involved["uid"]), message.reason, message.message)
            before = events.pop(identity, None)
            events[identity] = DecisionEvent(
                involved=involved,
                message=message,
                count=before.count + 1 if before else 1,
                first_number=before.first_number if before else record.number,
                last_number=record.number,
                first=before.first if before else time,
                last=time,
            )
    return list(events.values())


def event(occurrence: DecisionEvent, api_version: str) -> Json:
    """The Event as an object of the core group or of ``events.k8s.io``."""
    involved, message = occurrence.involved, occurrence.message
    namespace = str(involved.get("namespace", "default"))
    metadata: Json = {
        "name": f"{involved['name']}.{occurrence.first_number:016x}",
        "namespace": namespace,
        "uid": f"{occurrence.first_number:08x}-0000-4000-8000-{occurrence.last_number:012x}",
        "resourceVersion": str(occurrence.last_number),
        "creationTimestamp": occurrence.first,
    }
    head: Json = {"apiVersion": api_version, "kind": "Event", "metadata": metadata, "type": message.type}
    if api_version == "v1":
        return {
            **head,
            "involvedObject": involved,
            "reason": message.reason,
            "message": message.message,
            "source": {"component": message.reporter},
            "reportingComponent": message.reporter,
            "reportingInstance": "",
            "firstTimestamp": occurrence.first,
            "lastTimestamp": occurrence.last,
            "eventTime": None,
            "count": occurrence.count,
        }
    return {
        **head,
        "regarding": involved,
        "reason": message.reason,
        "note": message.message,
        "reportingController": message.reporter,
        "deprecatedSource": {"component": message.reporter},
        "deprecatedFirstTimestamp": occurrence.first,
        "deprecatedLastTimestamp": occurrence.last,
        "deprecatedCount": occurrence.count,
        "eventTime": None,
    }


def _messages_of_record(
    record: StoredRecord, binding_of: BindingOf, overrides: override_outcomes.Overrides
) -> Iterator[tuple[Message, Json]]:
    decoded = codec.decode(record)
    if not isinstance(decoded, codec.Decoded):
        return
    key: object = getattr(decoded.data, "key", None)
    if not isinstance(key, str):
        return
    binding = binding_of(key)
    # Events of an earlier object with this name are not those of the current one.
    if binding is None or times.from_text(record.headers["ce_time"]) < binding.created_ms:
        return
    for message in (
        *_messages(decoded.data, binding),
        *_ranked(decoded.data),
        *_overridden(decoded.data, overrides),
    ):
        template = binding.template
        if message.of_binding:
            yield (
                message,
                _involved(
                    _BINDING_GROUP,
                    "ResourceBinding" if template.namespace else "ClusterResourceBinding",
                    template.namespace,
                    keys.binding_name(template.kind, template.name),
                    binding.uid,
                ),
            )
        if message.of_template:
            template_ref = (template.api_version, template.kind, template.namespace, template.name)
            yield message, _involved(*template_ref, binding.template_uid)


def _overridden(data: shapes.Event, overrides: override_outcomes.Overrides) -> Iterator[Message]:
    """Events of override policies; as in Karmada, success is reported on the template only."""
    for done, message in overrides.take(data):
        yield Message(
            reason=f"ApplyOverridePolicy{'Succeed' if done else 'Failed'}",
            message=message,
            reporter="override-manager",
            type=NORMAL if done else WARNING,
            of_binding=not done,
        )


def _ranked(data: shapes.Event) -> Iterator[Message]:
    """Events about priorities and preemption."""
    match data:
        case decisions.PriorityResolved(fault=fault) if fault:
            message = f"{fault}; until then the scheduling priority is 0."
            yield Message(
                reason="PriorityClassNotFound", message=message, reporter="resource-detector", type=WARNING
            )
        case decisions.CapacityWanted(missing=missing):
            message = f"{missing} replicas find no room: all shards are asked who of lower priority has some."
            yield Message(reason="CapacityWanted", message=message, reporter="default-scheduler")
        case decisions.PreemptionDecided(victims=victims, reason=reason):
            left = "; ".join(
                f"{victim.key} leaves {victim.cluster} ({victim.replicas})" for victim in victims
            )
            message = f"Preempted: {left}." if left else f"Nobody is preempted: {summaries.NOBODY[reason]}."
            reason = "PreemptionSucceed" if left else "PreemptionFailed"
            yield Message(reason=reason, message=message, reporter="default-scheduler")
        case decisions.EvictionStarted(cluster=cluster, replicas=replicas, by=by) if by:
            message = f"Preempted by {by} in cluster {cluster}: {replicas} replicas leave it."
            yield Message(reason="Preempted", message=message, reporter="default-scheduler", type=WARNING)
        case _:
            return


def _messages(data: shapes.Event, binding: Binding) -> list[Message]:
    name = keys.binding_name(binding.template.kind, binding.template.name)
    namespace = binding.template.namespace
    kind, full_name = (
        ("ResourceBinding", f"{namespace}/{name}") if namespace else ("ClusterResourceBinding", name)
    )
    match data:
        case decisions.ScheduleDecided(clusters=clusters):
            chosen = ", ".join(f"{target.name}:{target.replicas}" for target in clusters)
            colon = ":" if namespace else ""
            message = f"Binding has been scheduled successfully. Result{colon} {{{chosen}}}"
            return [Message(reason="ScheduleBindingSucceed", message=message, reporter="default-scheduler")]
        case decisions.ScheduleFailed(message=message):
            reason = "ScheduleBindingFailed"
            return [Message(reason=reason, message=message, reporter="default-scheduler", type=WARNING)]
        case decisions.BindingClaimed(policy=policy):
            named = f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name
            return [
                Message(
                    reason="ApplyPolicySucceed",
                    message=f"Apply policy({named}) succeed",
                    reporter="resource-detector",
                    of_binding=False,
                )
            ]
        case decisions.BindingDispatched():
            message = f"Sync work of {kind}({full_name}) successful."
            return [Message(reason="SyncWorkSucceed", message=message, reporter=_controller(namespace))]
        case decisions.EvictionStarted(cluster=cluster, not_preserved=missing, by=""):
            reason = "EvictWorkloadFromClusterSucceed"
            lost = (f" {label} is not preserved: {missing[label]}." for label in sorted(missing))
            message = f"Evict from cluster {cluster} succeed.{''.join(lost)}"
            return [Message(reason=reason, message=message, reporter="taint-manager")]
        case decisions.DependenciesDistributed(dependencies=dependencies):
            return _distributed(dependencies)
        case decisions.StatusAggregated():
            return _aggregated(kind, full_name, namespace)
        case _:
            return []


def _distributed(dependencies: Sequence[shapes.WorkloadRef]) -> list[Message]:
    reporter = "dependencies-distributor"
    refs = " ".join(
        f"{{APIVersion:{ref.api_version} Kind:{ref.kind} Namespace:{ref.namespace} Name:{ref.name} "
        "LabelSelector:<nil>}"
        for ref in dependencies
    )
    of_template = f"Get dependencies([{refs}]) succeed."
    of_binding = "Sync schedule results to dependencies succeed."
    return [
        Message(reason="GetDependenciesSucceed", message=of_template, reporter=reporter, of_binding=False),
        Message(
            reason="SyncScheduleResultToDependenciesSucceed",
            message=of_binding,
            reporter=reporter,
            of_template=False,
        ),
    ]


def _aggregated(kind: str, full_name: str, namespace: str) -> list[Message]:
    reporter = (
        "resource-binding-status-controller" if namespace else "cluster-resource-binding-status-controller"
    )
    of_binding = f"Update {kind}({full_name}) with AggregatedStatus successfully."
    of_template = "Update Resource with AggregatedStatus successfully."
    reason = "AggregateStatusSucceed"
    return [
        Message(reason=reason, message=of_binding, reporter=reporter, of_template=False),
        Message(reason=reason, message=of_template, reporter=reporter, of_binding=False),
    ]


def _controller(namespace: str) -> str:
    return "binding-controller" if namespace else "cluster-resource-binding-controller"


def _involved(api_version: str, kind: str, namespace: str, name: str, uid: str) -> Json:
    reference: Json = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return {**reference, "namespace": namespace} if namespace else reference
