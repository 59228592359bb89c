"""Rendering of objects: the stored manifest merged with what the engine knows about it.

A manifest that an old release accepted may contain invalid JSON; such an object is rendered from the other columns of
its row only: apiVersion, kind and metadata.
"""

from collections.abc import Iterable, Sequence
from typing import TypedDict, cast

import msgspec

from engine.domain import federated_quotas, marks, namespaces, reported_statuses
from engine.domain.bindings import Claim, Mark
from engine.domain.rebalancers import Observed
from events import decisions, job_statuses, json_paths, shapes, status_values, times, vocabulary
from events.json_values import DECODING_ERRORS, Json, as_text, decoded, objects_at
from events.kube_fields import Condition, ObjectMeta
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections.bindings import Binding
from projections.documents import field_owners, kind_statuses
from projections.objects import ObjectRow
from projections.rebalancers import Rebalancer

_CONDITION_IDENTITY = ("type", "status", "reason")


class WorkloadReference(TypedDict, total=False):
    """A reference to a template in the document of another object; some references have no uid and no version."""

    apiVersion: str
    kind: str
    name: str
    namespace: str
    uid: str
    resourceVersion: str


class _ObservedWorkload(TypedDict, total=False):
    reason: str
    result: str
    workload: WorkloadReference


class RebalancerStatus(TypedDict, total=False):
    """The status of a WorkloadRebalancer; finishTime and the workloads' results are absent until they are known."""

    finishTime: str | None
    observedGeneration: int
    observedWorkloads: list[_ObservedWorkload]


class _JobEnd(TypedDict, total=False):
    completionTime: str
    conditions: list[Condition]


def instant(at_ms: int) -> str | None:
    """Return the instant in RFC 3339 with whole seconds, as in Kubernetes objects; None for 0, an unknown time."""
    return times.to_seconds_text(at_ms) if at_ms else None


def object_document(
    row: ObjectRow,
    binding: Binding | None,
    rebalancer: Rebalancer | None,
    *,
    managed: bool = False,
    api_version: str = "",
) -> KubeObject:
    """Return the object with its status: from ``binding`` for a template, from ``rebalancer`` for a rebalancer.

    A status field that a client wrote is shown unless the engine sets it. ``managed`` adds ``managedFields``.
    ``api_version``, if set, replaces that of the manifest.
    """
    document = _manifest(row)
    if api_version:
        document["apiVersion"] = api_version
    metadata = _part(document, "metadata")
    document["metadata"] = metadata
    # A client's manifest may repeat the status of an earlier read; show only the folded status.
    document.pop("status", None)
    for name in ("selfLink",) if managed else ("managedFields", "selfLink"):
        metadata.pop(name, None)
    metadata["name"] = row.name
    metadata |= {"namespace": row.namespace} if row.namespace else {}
    # As in Kubernetes, the start of a deletion increments the generation; otherwise controllers ignore the deletion.
    generation = row.generation + KubeObject(document).is_ending
    metadata |= identity(row.uid, generation, row.created_ms, shown_number(row, binding, rebalancer))
    kind = _known_kind(row)
    if kind in marks.POLICY_IDS:
        policy = marks.with_policy_marks(row.uid, KubeObject(document))
        document, metadata = policy.document, policy.metadata
    if kind == "Namespace":
        namespace = as_namespace(KubeObject(document))
        document, metadata = namespace.document, namespace.metadata
    if kind == "WorkloadRebalancer":
        document["status"] = rebalancer_status(rebalancer) if rebalancer is not None else {}
    elif row.status:
        document["status"] = decoded(row.status)
    if kind == federated_quotas.KIND:
        overall = _part(_part(document, "spec"), "overall")
        document["status"] = federated_quotas.shown(_part(document, "status"), overall)
    if kind != "WorkloadRebalancer":
        _overlay(document, metadata, row, binding)
    if managed:
        _add_status_managers(document, metadata, row, binding)
    return KubeObject(document)


def as_namespace(value: KubeObject) -> KubeObject:
    """Return a Namespace with its derived fields: its finalizer, its phase, and the label with its name."""
    labels = {**value.labels, "kubernetes.io/metadata.name": value.name}
    derived: Json = {
        "metadata": {**value.metadata, "labels": labels},
        "spec": {**namespaces.finalized_spec(), **value.object_at("spec")},
        "status": namespaces.shown_status(value),
    }
    return value.with_fields(derived)


def shown_number(row: ObjectRow, binding: Binding | None, rebalancer: Rebalancer | None) -> int:
    """Return the number of the last record that changed the rendered object."""
    if rebalancer is not None and rebalancer.uid == row.uid:
        return max(row.number, rebalancer.number)
    if binding is not None and binding.template_uid == row.uid:
        return max(row.number, binding.template_number)
    return row.number


def identity(uid: str, generation: int, created_ms: int, number: int) -> ObjectMeta:
    """Return the metadata that the engine sets; ``number`` is that of the last record to change the rendered object."""
    return {
        "uid": uid,
        "generation": generation,
        "creationTimestamp": instant(created_ms),
        "resourceVersion": str(number),
    }


def workload_reference(ref: shapes.WorkloadRef) -> WorkloadReference:
    reference: WorkloadReference = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
    if ref.namespace:
        reference["namespace"] = ref.namespace
    return reference


def claim_marks(policy: Claim | Mark | None) -> marks.Marks:
    """Return the labels and annotations that name a template's policy; none without a policy."""
    return marks.Marks({}, {}) if policy is None else marks.of_claim(policy.policy, policy.permanent_id)


def rebalancer_status(rebalancer: Rebalancer) -> RebalancerStatus:
    status: RebalancerStatus = {}
    if rebalancer.finish_ms:
        status["finishTime"] = instant(rebalancer.finish_ms)
    observed = sorted(rebalancer.observed.values(), key=_order)
    status["observedGeneration"] = rebalancer.started
    status["observedWorkloads"] = [_observed(workload) for workload in observed]
    return status


def template_status(binding: Binding) -> Json:
    """Return a template's status: sums over all clusters, and fields aggregated by its kind's interpreter."""
    # A Job's status has counts of its own (active, succeeded, failed), not replicas.
    kind = binding.template.api_version, binding.template.kind
    has_counts = binding.replicas is not None and kind != vocabulary.JOB
    if binding.status is None:
        return {}
    kind_status = kind_statuses.aggregate(binding.template, binding.status.members)
    if kind_status is not None:
        return {**kind_status}
    members = binding.status.members
    generation: Json = {"observedGeneration": binding.status.observed_generation}
    statuses = _whole_statuses(members) if binding.status.whole else []
    if len(members) == 1 and statuses:
        ((_, whole),) = statuses
        return whole | generation if "observedGeneration" in whole else whole
    conditions = _merged_conditions(statuses)
    if not (has_counts or binding.status.fields or conditions):
        return {}
    status: Json = {"conditions": conditions} if conditions else {}
    for path, value in binding.status.fields.items():
        put(status, json_paths.names(path), value)
    if kind == vocabulary.JOB:
        return {**_with_start(status, members), **_job_end(members)}
    counts = kind_statuses.replica_counts(binding.template, members) if has_counts else {}
    if binding.replicas and status_values.is_custom(kind[0]) and not any(counts.values()):
        counts = {}  # The statuses of the kind have no counts, or no replica exists yet.
    return status | generation | counts


def _merged_conditions(statuses: Iterable[tuple[str, Json]]) -> list[Json]:
    """Return the conditions of the statuses, given by cluster, merged as Karmada does for kinds of Flux and Kyverno.

    Conditions of equal type, status and reason become one condition. Its message lists the messages of the clusters;
    its other fields are those of the first cluster.
    """
    conditions: dict[tuple[str, ...], Json] = {}
    messages: dict[tuple[str, ...], list[str]] = {}
    for cluster, status in statuses:
        for condition in filter(None, objects_at(status, "conditions")):
            identity = tuple(as_text(condition.get(name)) for name in _CONDITION_IDENTITY)
            conditions.setdefault(identity, condition)
            messages.setdefault(identity, []).append(f"{cluster}={as_text(condition.get('message'))}")
    return [
        {**condition, "message": ", ".join(messages[identity])} for identity, condition in conditions.items()
    ]


def _whole_statuses(members: Sequence[decisions.MemberStatus]) -> list[tuple[str, Json]]:
    """Return (cluster, whole status) for each member that reported a whole status."""
    return [
        (member.cluster, whole)
        for member in members
        if (whole := reported_statuses.decoded(member.status)) is not None
    ]


def _with_start(status: Json, members: Sequence[decisions.MemberStatus]) -> Json:
    """Return a Job's status with the earliest start time of all members; texts that are not times are ignored."""
    (started,) = json_paths.names(job_statuses.STARTED)
    rest = {name: value for name, value in status.items() if name != started}
    first = kind_statuses.earliest((member.values for member in members), job_statuses.STARTED)
    return {**rest, started: first} if first else rest


def _job_end(members: Sequence[decisions.MemberStatus]) -> _JobEnd:
    """Conditions of a finished Job: failed if it failed in any cluster, complete once it is complete in all."""
    failed = [
        member.cluster for member in members if member.values.get(job_statuses.FAILED) == job_statuses.TRUE
    ]
    if failed:
        message = f"The Job failed in {', '.join(failed)}"
        return {
            "conditions": [{"type": "Failed", "status": "True", "reason": "JobFailed", "message": message}]
        }
    if not members or not all(
        member.values.get(job_statuses.COMPLETE) == job_statuses.TRUE for member in members
    ):
        return {}
    last = kind_statuses.latest((member.values for member in members), job_statuses.COMPLETED)
    condition: Condition = {
        "type": "Complete",
        "status": "True",
        "reason": "Completed",
        "message": "Job completed",
    }
    if not last:
        return {"conditions": [condition]}
    condition["lastTransitionTime"] = last
    return {"completionTime": last, "conditions": [condition]}


def put(status: Json, names: tuple[str, ...], value: int | str) -> None:
    """Set a value at a path in a status; does nothing if the path leads through a value that is not an object."""
    for name in names[:-1]:
        below = status.setdefault(name, {})
        if not isinstance(below, dict):
            return
        status = cast("Json", below)
    if names:
        status[names[-1]] = value


def _known_kind(row: ObjectRow) -> str:
    """Return the object's kind if the engine knows the kind; empty for a custom kind, even one of the same name."""
    return row.kind if known_kinds.of(row.api_version, row.kind) is not None else ""


def _manifest(row: ObjectRow) -> Json:
    try:
        return msgspec.json.decode(row.manifest, type=Json)
    except DECODING_ERRORS:
        return {"apiVersion": row.api_version, "kind": row.kind}


def _part(document: Json, name: str) -> Json:
    part = document.get(name)
    return dict(cast("Json", part)) if isinstance(part, dict) else {}


def _overlay(document: Json, metadata: Json, row: ObjectRow, binding: Binding | None) -> None:
    own = binding if binding is not None and binding.template_uid == row.uid else None
    labels, annotations = claim_marks((own and (own.marked or own.claim)) or row.marked)
    if labels:
        metadata["labels"] = {**_part(metadata, "labels"), **labels}
        metadata["annotations"] = {**_part(metadata, "annotations"), **annotations}
    if own is not None and (status := template_status(own)):
        document["status"] = {**_part(document, "status"), **status}


def _add_status_managers(document: Json, metadata: Json, row: ObjectRow, binding: Binding | None) -> None:
    """Add the ``managedFields`` of the status to those of the manifest."""
    managed = field_owners.entries(field_owners.decode(row.owners))
    engine_fields: Json = {}
    if _known_kind(row) in ("Namespace", "WorkloadRebalancer"):
        engine_fields = _part(document, "status")
    elif binding is not None and binding.template_uid == row.uid:
        engine_fields = template_status(binding)
    if engine_fields:
        managed.append(
            field_owners.of_status(row.api_version, engine_fields),
        )
    if managed:
        existing = metadata.get("managedFields")
        metadata["managedFields"] = [
            *(cast("list[object]", existing) if isinstance(existing, list) else ()),
            *managed,
        ]


def _order(observed: Observed) -> str:
    return observed.workload.sort_key


def _observed(observed: Observed) -> _ObservedWorkload:
    rendered: _ObservedWorkload = {"reason": observed.reason} if observed.reason else {}
    if observed.result:
        rendered["result"] = observed.result
    rendered["workload"] = workload_reference(observed.workload)
    return rendered
