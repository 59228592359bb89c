"""Kubernetes Events about clusters."""

from collections.abc import Iterator
from typing import Final

from engine.http.kube.kubernetes_events.message import Message, ObjectMessage
from engine.http.kube.kubernetes_events.subjects import Subjects, of_cluster
from events import cluster_decisions, clusters, shapes, times, vocabulary
from events.records import StoredRecord

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
                if (
                    cluster is not None
                    and times.from_text(record.headers["ce_time"]) == cluster.head.created_ms
                ):
                    yield ObjectMessage(_joined(name), of_cluster(cluster))
                    yield ObjectMessage(_NO_ACCESS_NEEDED, of_cluster(cluster))
            case cluster_decisions.ClusterJudged(name=name) if data.added or data.removed:
                cluster = self._subjects.cluster(name, record)
                if cluster is not None:
                    yield ObjectMessage(_tainted(data), of_cluster(cluster))
            case _:
                return


def _joined(name: str) -> Message:
    space = f"{vocabulary.EXECUTION_NAMESPACE_PREFIX}{name}"
    message = f"Created execution space({space}) for cluster({name})."
    return Message(reason="CreateExecutionSpaceSucceed", message=message, reporter=_CONTROLLER)


def _tainted(data: cluster_decisions.ClusterJudged) -> Message:
    changes = (("added", data.added), ("removed", data.removed))
    changed = "; ".join(f"{verb} {_listed(taints)}" for verb, taints in changes if taints)
    message = f"Taint cluster succeed: {changed}."
    return Message(reason="TaintClusterSucceed", message=message, reporter=_CONTROLLER)


def _listed(taints: tuple[clusters.Taint, ...]) -> str:
    return ",".join(_text(taint) for taint in taints)


def _text(taint: clusters.Taint) -> str:
    value = f"Value:{taint.value}," if taint.value else ""
    return f"{{Key:{taint.key},{value}Effect:{taint.effect}}}"
