"""Kubernetes Events about clusters, and about Works and FederatedResourceQuotas that are sent to clusters."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.domain import federated_quotas
from engine.http.kube.kubernetes_events.subjects import (
    WARNING,
    Message,
    ObjectMessage,
    Subjects,
    of_cluster,
    of_template,
    of_work,
    time_ms,
)
from engine.objects import interpreters
from events import (
    cluster_decisions,
    clusters,
    decisions,
    health,
    keys,
    policies,
    quota_decisions,
    shapes,
    vocabulary,
    works,
)
from events.records import StoredRecord
from projections.documents import works as documents
from projections.works import Work

_CONTROLLER: Final = "cluster-controller"
_NO_ACCESS_NEEDED: Final = Message(
    reason="SyncImpersonationConfigSucceed",
    message="Sync impersonation config succeed.",
    reporter="unified-auth-controller",
)


class Clusters:
    """Derives Events from records about clusters."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects

    def take(self, record: StoredRecord, data: shapes.Event) -> Iterator[ObjectMessage]:
        """Yield the Events of the next record."""
        match data:
            case clusters.ClusterJoined(name=name):
                cluster = self._subjects.cluster(name, record)
                # If the Cluster existed before, this is an edit, and its namespace of Works exists already.
                if cluster is not None and time_ms(record) == cluster.head.created_ms:
                    space = f"{vocabulary.EXECUTION_NAMESPACE_PREFIX}{name}"
                    text = f"Created execution space({space}) for cluster({name})."
                    created = Message(
                        reason="CreateExecutionSpaceSucceed", message=text, reporter=_CONTROLLER
                    )
                    yield ObjectMessage(created, of_cluster(cluster))
                    yield ObjectMessage(_NO_ACCESS_NEEDED, of_cluster(cluster))
            case cluster_decisions.ClusterJudged(name=name) if data.added or data.removed:
                cluster = self._subjects.cluster(name, record)
                if cluster is not None:
                    yield ObjectMessage(_tainted(data), of_cluster(cluster))
            case _:
                return


def _tainted(data: cluster_decisions.ClusterJudged) -> Message:
    changes = (("added", data.added), ("removed", data.removed))
    changed = "; ".join(f"{verb} {','.join(map(_text, taints))}" for verb, taints in changes if taints)
    message = f"Taint cluster succeed: {changed}."
    return Message(reason="TaintClusterSucceed", message=message, reporter=_CONTROLLER)


def _text(taint: clusters.Taint) -> str:
    value = f"Value:{taint.value}," if taint.value else ""
    return f"{{Key:{taint.key},{value}Effect:{taint.effect}}}"


_EXECUTION: Final = "execution-controller"
_STATUS: Final = "work-status-controller"


class _Version(NamedTuple):
    """Version of a work that was sent to a cluster."""

    key: str
    cluster: str
    term: int
    step: int


class Works:
    """Derives Events from works and from reports on them, in log order."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._awaited: set[_Version] = set()
        self._is_dispatching: dict[tuple[str, str], bool] = {}

    def take(self, record: StoredRecord, data: shapes.Event) -> Iterator[ObjectMessage]:
        """Yield the Events of the next record."""
        match data:
            case works.WorkApplied():
                self._awaited.add(_Version(data.key, data.cluster, data.term, data.step))
                yield from self._dispatched(record, data, is_dispatching=True)
            case works.WorkSuspended():
                yield from self._dispatched(record, data, is_dispatching=False)
            case works.WorkRemoved():
                self._is_dispatching.pop((data.cluster, data.key), None)
            case health.WorkloadReported():
                yield from self._reported(record, data)
            case _:
                return

    def _dispatched(
        self,
        record: StoredRecord,
        data: works.WorkApplied | works.WorkSuspended,
        *,
        is_dispatching: bool,
    ) -> Iterator[ObjectMessage]:
        """Yield an Event if the dispatching of a work started, was suspended or was resumed.

        ``is_dispatching`` is the new state: False if the work is suspended.
        """
        where = (data.cluster, data.key)
        if self._is_dispatching.get(where) == is_dispatching:
            return
        self._is_dispatching[where] = is_dispatching
        work = self._subjects.work(*where, record)
        if work is not None:
            message = documents.dispatching_message(is_suspended=not is_dispatching)
            yield ObjectMessage(
                Message(reason="WorkDispatching", message=message, reporter=_EXECUTION),
                of_work(data.cluster, work),
            )

    def _reported(self, record: StoredRecord, data: health.WorkloadReported) -> Iterator[ObjectMessage]:
        cluster = data.cluster
        version = _Version(data.key, cluster, data.term, data.step)
        work = self._subjects.work(cluster, data.key, record)
        if version in self._awaited:
            self._awaited.discard(version)
            if work is not None:
                yield ObjectMessage(_synced(cluster, work, data.fault), of_work(cluster, work))
            binding = self._subjects.binding(data.key, record)
            if binding is not None:
                yield ObjectMessage(_applied(cluster, binding.template, data.fault), of_template(binding))
        if work is None or data.fault:
            return
        ref = work.template
        name = f"{ref.kind}/{ref.namespace}/{ref.name}"
        text = f"Reflect status for object({name}) succeed."
        reflected = Message(reason="ReflectStatusSucceed", message=text, reporter=_STATUS)
        yield ObjectMessage(reflected, of_work(cluster, work))
        is_judged = (ref.api_version, ref.kind) in interpreters.JUDGED_KINDS
        if is_judged or work.replicas is not None or data.values:
            text = f"Interpret health of object({name}) as {'healthy' if data.healthy else 'unhealthy'}."
            interpreted = Message(reason="InterpretHealthSucceed", message=text, reporter=_STATUS)
            yield ObjectMessage(interpreted, of_work(cluster, work))


def _synced(cluster: str, work: Work, fault: str) -> Message:
    name = f"{vocabulary.EXECUTION_NAMESPACE_PREFIX}{cluster}/{work.name}"
    if fault:
        message = f"Failed to sync work({name}) to cluster({cluster}), err: {fault}"
        return Message(reason="SyncFailed", message=message, reporter=_EXECUTION, type=WARNING)
    message = f"Sync work({name}) to cluster({cluster}) successful."
    return Message(reason="SyncSucceed", message=message, reporter=_EXECUTION)


def _applied(cluster: str, ref: shapes.WorkloadRef, fault: str) -> Message:
    name = f"{ref.namespace}/{ref.name}"
    if fault:
        message = f"Failed to create or update resource({name}) in member cluster({cluster}): {fault}"
        return Message(reason="SyncFailed", message=message, reporter=_EXECUTION, type=WARNING)
    message = f"Successfully applied resource({name}) to cluster {cluster}"
    return Message(reason="SyncSucceed", message=message, reporter=_EXECUTION)


_QUOTA_CONTROLLER: Final = "federated-resource-quota-{}-controller"
_BINDING_SUFFIX: Final = keys.binding_name(federated_quotas.QUOTA[1], "")


class Quotas:
    """Derives Events from records about FederatedResourceQuotas."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects

    def take(self, record: StoredRecord, data: shapes.Event) -> Iterator[ObjectMessage]:
        """Yield the Events of the next record."""
        match data:
            case policies.ConfigurationApplied():
                yield from self._message(record.key, record, "sync", "SyncWorkSucceed", "Sync works for")
                yield from self._collected(record.key, record)
            case decisions.StatusAggregated(key=key) if key.endswith(_BINDING_SUFFIX):
                if self._subjects.binding(key, record) is None:
                    quota = federated_quotas.object_key(key)
                    reason = "AggregateStatusSucceed"
                    yield from self._message(quota, record, "status", reason, "Collect status of")
            case quota_decisions.QuotaDecided(namespace=namespace):
                for name in data.used:
                    key = keys.object_key(federated_quotas.KIND, namespace, name)
                    yield from self._collected(key, record)
            case _:
                return

    def _collected(self, key: str, record: StoredRecord) -> Iterator[ObjectMessage]:
        yield from self._message(
            key, record, "enforcement", "CollectOverallStatusSucceed", "Collect status of"
        )

    def _message(
        self, key: str, record: StoredRecord, job: str, reason: str, action: str
    ) -> Iterator[ObjectMessage]:
        involved = self._subjects.quota(key, record)
        if involved is not None:
            text = f"{action} FederatedResourceQuota({involved.namespace}/{involved.name}) succeed."
            yield ObjectMessage(
                Message(reason=reason, message=text, reporter=_QUOTA_CONTROLLER.format(job)), involved
            )
