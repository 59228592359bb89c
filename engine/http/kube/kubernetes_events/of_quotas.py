"""Kubernetes Events about FederatedResourceQuotas: their works sent to clusters, and their collected status."""

from collections.abc import Iterator
from typing import Final

from engine.domain import federated_quotas
from engine.http.kube.kubernetes_events.message import Message, ObjectMessage
from engine.http.kube.kubernetes_events.subjects import Subjects
from events import decisions, keys, policies, quota_decisions, shapes
from events.records import StoredRecord

_CONTROLLER: Final = "federated-resource-quota-{}-controller"
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
                Message(reason=reason, message=text, reporter=_CONTROLLER.format(job)), involved
            )
