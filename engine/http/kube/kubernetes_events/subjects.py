"""The texts of Kubernetes Events, and the objects that they are about, in their current state in the views."""

from functools import cache, partial
from typing import Final, NamedTuple

from msgspec import Struct

from engine.domain import federated_quotas
from events import attributes, keys, shapes, times, vocabulary
from events.records import StoredRecord
from events.validation.known_kinds import POLICY_GROUP, WORK_GROUP
from projections import bindings, clusters, object_tables, objects, works
from projections.bindings import Binding
from projections.clusters import Cluster
from projections.documents.works import API_VERSION as WORK_VERSION
from projections.port import Rows
from projections.works import Work

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Message(Struct, frozen=True, kw_only=True):
    """Reason, message, type and reporter of an Event; the reporter is the controller that reports it in Karmada."""

    reason: str
    message: str
    reporter: str
    type: str = NORMAL


class ObjectReference(Struct, frozen=True):
    """The reference to the object that an Event is about; the namespace is empty for cluster-scoped kinds."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def plain(self) -> dict[str, str]:
        """Return the reference as JSON."""
        reference = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }
        if self.namespace:
            reference["namespace"] = self.namespace
        return reference


class ObjectMessage(NamedTuple):
    """A message with the object that it is about; ``involved`` is the reference to the object."""

    message: Message
    involved: ObjectReference


_CLUSTER_VERSION = "cluster.karmada.io/v1alpha1"
_QUOTA = object_tables.Kind(POLICY_GROUP, federated_quotas.KIND)
QUOTAS = keys.object_key(federated_quotas.KIND, "", "")
"""The start of the keys of FederatedResourceQuotas."""


class Subjects:
    """Looks up objects within one read of the views; each object is read once."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._binding = cache(partial(bindings.stored, rows))
        self._work = cache(partial(works.stored, rows))
        self._cluster = cache(partial(clusters.stored, rows))
        self._quota = cache(partial(object_tables.get, rows, _QUOTA))
        self._templates: dict[str, str] = {}

    def binding(self, key: str, record: StoredRecord) -> Binding | None:
        """Return the binding that a record is about; None if it does not exist, or was created after the record."""
        binding = self._binding(key)
        return None if binding is None or time_ms(record) < binding.created_ms else binding

    def has_template(self, key: str, uid: str) -> bool:
        """Whether the template with this binding key exists and has this uid."""
        if key not in self._templates:
            stored = objects.by_keys(self._rows, [key]).get(key)
            self._templates[key] = "" if stored is None else stored.head.uid
        return uid == self._templates[key]

    def work(self, cluster: str, key: str, record: StoredRecord) -> Work | None:
        """Return the work of a binding in a cluster; None if it does not exist, or was created after the record."""
        work = self._work(cluster, key)
        return None if work is None or time_ms(record) < work.created_ms else work

    def cluster(self, name: str, record: StoredRecord) -> Cluster | None:
        """Return a cluster; None if it does not exist, or was created after the record."""
        cluster = self._cluster(name)
        return None if cluster is None or time_ms(record) < cluster.head.created_ms else cluster

    def quota(self, key: str, record: StoredRecord) -> ObjectReference | None:
        """Return the reference to the FederatedResourceQuota with this key.

        None if the key is that of another kind, or if the quota does not exist or was created after the record.
        """
        if not key.startswith(QUOTAS):
            return None
        quota = self._quota(*keys.split(key.removeprefix(QUOTAS)))
        if quota is None:
            return None
        # A quota that was created without a time has no creationTimestamp.
        created = quota.text_at("metadata", "creationTimestamp")
        if created and time_ms(record) < times.from_text(created):
            return None
        return ObjectReference(_QUOTA.api_version, _QUOTA.kind, quota.namespace, quota.name, quota.uid)


def of_binding(binding: Binding) -> ObjectReference:
    """Return the reference to a binding."""
    ref = binding.template
    kind = "ResourceBinding" if ref.namespace else "ClusterResourceBinding"
    return ObjectReference(
        WORK_GROUP, kind, ref.namespace, keys.binding_name(ref.kind, ref.name), binding.uid
    )


def of_template(binding: Binding) -> ObjectReference:
    """Return the reference to the template of a binding."""
    return of_ref(binding.template, binding.template_uid)


def of_ref(ref: shapes.WorkloadRef, uid: str) -> ObjectReference:
    """Return the reference to an object."""
    return ObjectReference(ref.api_version, ref.kind, ref.namespace, ref.name, uid)


def of_work(cluster: str, work: Work) -> ObjectReference:
    """Return the reference to the Work object of a work."""
    namespace = f"{vocabulary.EXECUTION_NAMESPACE_PREFIX}{cluster}"
    return ObjectReference(WORK_VERSION, "Work", namespace, work.name, work.uid)


def of_cluster(cluster: Cluster) -> ObjectReference:
    """Return the reference to a Cluster."""
    return ObjectReference(_CLUSTER_VERSION, "Cluster", "", cluster.name, cluster.head.uid)


def time_ms(record: StoredRecord) -> int:
    """Return the time of a record in milliseconds; 0 if its producer set none, or one that cannot be read."""
    try:
        return times.from_text(attributes.get(record, "time"))
    except ValueError:
        return 0
