"""Kubernetes Events about Works: their dispatch, their application in the cluster, and the reported health."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.http.kube.kubernetes_events.message import WARNING, Message, ObjectMessage
from engine.http.kube.kubernetes_events.subjects import Subjects, of_template, of_work
from engine.objects import interpreters
from events import health, shapes, vocabulary, works
from events.records import StoredRecord
from projections.documents import works as documents
from projections.works import Work

_EXECUTION: Final = "execution-controller"
_STATUS: Final = "work-status-controller"


class _Version(NamedTuple):
    """Version of a work that was sent to a cluster."""

    key: str
    cluster: str
    term: int
    step: int


class Works:
    """Matches works with the first report on each, in log order."""

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
        """An Event if dispatching started or was suspended."""
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
        yield ObjectMessage(_reflected(work), of_work(cluster, work))
        is_judged = (work.template.api_version, work.template.kind) in interpreters.JUDGED_KINDS
        if is_judged or work.replicas is not None or data.values:
            yield ObjectMessage(_interpreted(work, is_healthy=data.healthy), of_work(cluster, work))


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


def _reflected(work: Work) -> Message:
    message = f"Reflect status for object({_object(work)}) succeed."
    return Message(reason="ReflectStatusSucceed", message=message, reporter=_STATUS)


def _interpreted(work: Work, *, is_healthy: bool) -> Message:
    verdict = "healthy" if is_healthy else "unhealthy"
    message = f"Interpret health of object({_object(work)}) as {verdict}."
    return Message(reason="InterpretHealthSucceed", message=message, reporter=_STATUS)


def _object(work: Work) -> str:
    ref = work.template
    return f"{ref.kind}/{ref.namespace}/{ref.name}"
