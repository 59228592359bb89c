"""Static assignments of FederatedResourceQuotas: a ResourceQuota in each named cluster, and its reported status.

Works of the assigned ResourceQuotas use the binding key of a ResourceQuota template with this name and namespace (in
Karmada, the works of both have the same name). So a ResourceQuota template that a policy propagates takes precedence
over the assignments.
"""

import hashlib

import msgspec
from msgspec import Struct

from engine.domain import federated_quotas
from engine.kubeapi.values import quantity
from engine.overrides import policies
from events import decisions, keys, kube_objects, shapes
from events.json_values import object_at


class Assignments(Struct, frozen=True):
    """A FederatedResourceQuota's static assignments; ``offset`` is that of its last write.

    ``quotas`` has, by cluster, the index of the assignment in the spec and the digest of the assigned ResourceQuota.
    """

    ref: shapes.WorkloadRef
    offset: int
    quotas: dict[str, tuple[int, str]]

    @property
    def quota(self) -> shapes.WorkloadRef:
        """The ResourceQuota that each of the clusters gets."""
        api_version, kind = federated_quotas.QUOTA
        return shapes.WorkloadRef(
            api_version=api_version, kind=kind, name=self.ref.name, namespace=self.ref.namespace
        )

    @property
    def key(self) -> str:
        quota = self.quota
        return keys.binding_key(quota.kind, quota.namespace, quota.name)

    def override(self, cluster: str) -> shapes.OverrideRef:
        """Return the reference by which the work of a cluster names its assignment."""
        index, digest = self.quotas[cluster]
        return shapes.OverrideRef(
            kind=self.ref.kind,
            name=self.ref.name,
            namespace=self.ref.namespace,
            offset=self.offset,
            digest=digest,
            rules=(index,),
        )


def read(manifest: kube_objects.Manifest, raw: msgspec.Raw, offset: int) -> Assignments:
    """Return the assignments of a FederatedResourceQuota; of several for one cluster only the first is used."""
    result: dict[str, tuple[int, str]] = {}
    for index, (cluster, quota) in enumerate(federated_quotas.quotas(raw)):
        result.setdefault(
            cluster, (index, hashlib.blake2b(quota, digest_size=policies.DIGEST_BYTES).hexdigest())
        )
    return Assignments(manifest.reference, offset, result)


def put(known: dict[str, Assignments], assignments: Assignments) -> list[str]:
    """Store assignments; return their binding key in a list, which is empty if neither old nor new ones exist."""
    key = assignments.key
    is_known = known.pop(key, None) is not None
    if assignments.quotas:
        known[key] = assignments
    return [key] if is_known or assignments.quotas else []


def overall_used(members: tuple[decisions.MemberStatus, ...]) -> dict[str, shapes.Whole | str]:
    """Return the use of each resource in all clusters together."""
    totals: dict[str, int] = {}
    for member in federated_quotas.members(members):
        for resource, amount in object_at(member.get("used")).items():
            totals[resource] = totals.get(resource, 0) + (quantity.nano_units_of(amount) or 0)
    return {
        resource: quantity.of_nano(resource.rpartition(".")[2], nano)
        for resource, nano in sorted(totals.items())
    }
