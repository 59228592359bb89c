"""Rendering of works as Work objects (``work.karmada.io/v1alpha1``), each in the namespace of its cluster.

A Work contains the template with this cluster's replicas. Its resourceVersion is the number of the last
record that changed the rendered object: a decision, a report, the template, or an override policy. The
overriders that apply are listed in Karmada's annotations; the caller applies them.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

import msgspec
from msgspec import UNSET, Struct

from engine.domain import federated_quotas, marks, namespaces, replica_fields
from events import decisions, shapes, vocabulary
from events.json_values import DECODING_ERRORS, Json, as_object, object_at
from events.kube_fields import Condition, ObjectMeta, OwnerReference, condition, controlled_by
from events.kube_objects import KubeObject
from projections.documents import field_owners
from projections.documents.member_statuses import apply_failure_message, member_status
from projections.documents.objects import identity, instant
from projections.objects import ObjectRow
from projections.works import Work

API_VERSION: Final = "work.karmada.io/v1alpha1"
APPLIED: Final = {
    "ClusterOverridePolicy": "policy.karmada.io/applied-cluster-overrides",
    "OverridePolicy": "policy.karmada.io/applied-overrides",
}
"""Annotations that list the applied overriders, by kind of override policy; the first kind is applied first."""

_NONE: Final[Mapping[shapes.OverrideRef, bytes]] = {}


class _Identifier(TypedDict):
    ordinal: int
    group: str
    version: str
    kind: str
    resource: str
    namespace: str
    name: str


class _ManifestStatus(TypedDict, total=False):
    identifier: _Identifier
    status: Json
    health: str


class _Status(TypedDict, total=False):
    conditions: list[Condition]
    manifestStatuses: list[_ManifestStatus]


class _AppliedRule(TypedDict):
    policyName: str
    overriders: Json


def cluster_of(namespace: str) -> str | None:
    """Return the cluster whose Works are in this namespace; None if the namespace is not for Works."""
    prefix = vocabulary.EXECUTION_NAMESPACE_PREFIX
    return namespace.removeprefix(prefix) if namespace.startswith(prefix) else None


def dispatching_message(*, is_suspended: bool) -> str:
    """Return the message of the condition Dispatching."""
    if is_suspended:
        return "Work dispatching is in a suspended state."
    return "Work is being dispatched to member clusters."


def mark_values(cluster: str, work: Work, template_uid: str, generation: int) -> marks.MarkValues:
    """Return the facts that determine the labels and annotations of the object that a work contains.

    ``template_uid`` is empty if the template is deleted.
    """
    return marks.MarkValues(
        template=work.template,
        cluster=cluster,
        claim=work.claim,
        template_uid=template_uid,
        template_generation=generation,
        binding_uid=work.binding_uid,
        work_uid=work.uid,
        overwrites=work.overwrites,
    )


def work_object(
    cluster: str,
    work: Work,
    template: ObjectRow | None,
    policies: Mapping[shapes.OverrideRef, bytes] = _NONE,
) -> KubeObject:
    """Return the work as an object.

    ``template`` is None if it was deleted, and for the last document of a deleted work; the manifest then has only
    its kind and name. ``policies`` are the manifests of existing override policies.
    """
    labels, annotations = marks.of_work(mark_values(cluster, work, "", 0))
    quota = federated_quotas.assignment_ref(work.overrides)
    if quota is None:
        manifest = object_in_cluster(cluster, work, template)
    else:
        manifest = _assigned_quota(cluster, work, quota, policies)
        labels |= {
            federated_quotas.NAMESPACE_LABEL: quota.namespace,
            federated_quotas.NAME_LABEL: quota.name,
        }
    spec = {
        "workload": {"manifests": [manifest.document]},
        "suspendDispatching": work.suspended,
        "preserveResourcesOnDeletion": work.claim.preserves,
    }
    status = _status(work)
    metadata: ObjectMeta = {
        "name": work.name,
        "namespace": marks.work_namespace(cluster),
        **identity(work.uid, work.generation, work.created_ms, work.number),
        "labels": labels,
        "annotations": {**annotations, **_applied(work, policies)},
        "finalizers": ["karmada.io/execution-controller"],
    }
    if template is not None or policies:
        if (owner := _owner(work, template)) is not None:
            metadata["ownerReferences"] = [owner]
        metadata["managedFields"] = field_owners.engine_managed_fields(API_VERSION, spec, status)
    return KubeObject(
        {"apiVersion": API_VERSION, "kind": "Work", "metadata": metadata, "spec": spec, "status": status}
    )


def object_in_cluster(cluster: str, work: Work, template: ObjectRow | None) -> KubeObject:
    """Return the object of a work in its cluster, before overrides; without a template only its kind and name."""
    if template is None:
        return _head(work)
    facts = mark_values(cluster, work, template.uid, template.generation)
    return marks.propagated(_manifest(work, template), facts)


def _assigned_quota(
    cluster: str, work: Work, quota: shapes.OverrideRef, policies: Mapping[shapes.OverrideRef, bytes]
) -> KubeObject:
    """Return the ResourceQuota that a FederatedResourceQuota assigns to the cluster.

    If the FederatedResourceQuota no longer exists, the ResourceQuota has no spec.
    """
    quotas = federated_quotas.quotas(policies.get(quota, b"{}"))
    manifest = _head(work)
    if quota.rules[0] < len(quotas):
        manifest = KubeObject.from_json(quotas[quota.rules[0]][1])
    return marks.propagated(manifest, mark_values(cluster, work, "", 0))


def _owner(work: Work, template: ObjectRow | None) -> OwnerReference | None:
    """Return a reference to the namespace as owner, for the work of a namespace; None for other works."""
    ref = work.template
    if template is None or (ref.api_version, ref.kind) != namespaces.KIND:
        return None
    return controlled_by(ref.api_version, ref.kind, ref.name, template.uid)


def _applied(work: Work, policies: Mapping[shapes.OverrideRef, bytes]) -> dict[str, str]:
    """Return the annotations with the work's overrides, in the order in which they are applied."""
    rules_by_annotation: dict[str, list[_AppliedRule]] = {}
    for ref in work.overrides if federated_quotas.assignment_ref(work.overrides) is None else ():
        for overriders in _overriders(ref, policies.get(ref, b"{}")):
            mark = APPLIED.get(ref.kind, "")
            rules_by_annotation.setdefault(mark, []).append(
                {"policyName": ref.name, "overriders": overriders}
            )
    return {mark: msgspec.json.encode(rules).decode() for mark, rules in sorted(rules_by_annotation.items())}


def _overriders(ref: shapes.OverrideRef, manifest: bytes) -> Iterator[Json]:
    """Yield the overriders of the rules in ``ref``, except rules that the override policy no longer has.

    The policy may be newer than the work; the binding's next work will have the new rules.
    """
    try:
        spec = _POLICY.decode(manifest).spec
    except (msgspec.MsgspecError, RecursionError):
        return
    rules = spec.override_rules or (_Rule(overriders=spec.overriders),)
    for index in ref.rules:
        if index < len(rules):
            yield rules[index].overriders


class _Rule(Struct, frozen=True):
    overriders: dict[str, object] = {}


class _Spec(Struct, frozen=True, rename="camel"):
    override_rules: tuple[_Rule, ...] = ()
    overriders: dict[str, object] = {}


class _Policy(Struct, frozen=True):
    spec: _Spec = _Spec()


_POLICY: Final = msgspec.json.Decoder(_Policy)


def _head(work: Work) -> KubeObject:
    ref = work.template
    metadata = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    return KubeObject({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata})


def _manifest(work: Work, template: ObjectRow) -> KubeObject:
    ref, head = work.template, _head(work)
    try:
        manifest = msgspec.json.decode(template.manifest, type=Json)
    except DECODING_ERRORS:
        return head
    texts = object_at(manifest, "metadata")
    metadata = {**head.metadata, **{name: texts[name] for name in ("labels", "annotations") if name in texts}}
    spec = as_object(manifest.get("spec"))
    if spec is not None and (ref.api_version, ref.kind) == vocabulary.JOB:
        # Agents apply a Job without this field, since the control plane deletes finished Jobs.
        spec.pop("ttlSecondsAfterFinished", None)
    if work.replicas is not None and spec is not None:
        declared = replica_fields.declared_path(work.reading)
        manifest = replica_fields.with_counts(manifest, declared, work.replicas, work.completions)
    manifest.pop("status", None)
    return KubeObject(replica_fields.with_labels({**manifest, "metadata": metadata}, work.labels))


def _status(work: Work) -> _Status:
    dispatching = condition(
        "Dispatching",
        str(not work.suspended),
        "SuspendDispatching" if work.suspended else "Dispatching",
        dispatching_message(is_suspended=work.suspended),
        instant(work.dispatching_ms),
    )
    member = work.member
    if member is None:
        return {"conditions": [dispatching]}
    if member.applied:
        reason, message = "AppliedSuccessful", "Manifest has been successfully applied"
    else:
        reason, message = "AppliedFailed", apply_failure_message(member)
    applied = condition("Applied", str(member.applied), reason, message, instant(work.applied_ms))
    return {"conditions": [applied, dispatching], "manifestStatuses": [_manifest_status(work, member)]}


def _manifest_status(work: Work, member: decisions.MemberStatus) -> _ManifestStatus:
    ref = work.template
    group, _, version = ref.api_version.rpartition("/")
    # Karmada leaves the name of the resource empty.
    identifier: _Identifier = {
        "ordinal": 0,
        "group": group,
        "version": version,
        "kind": ref.kind,
        "resource": "",
        "namespace": ref.namespace,
        "name": ref.name,
    }
    status = member_status(member, ref, has_replicas=work.replicas is not None)
    shown: _ManifestStatus = {"identifier": identifier}
    if status is not UNSET:
        shown["status"] = msgspec.to_builtins(status)
    shown["health"] = member.health
    return shown
