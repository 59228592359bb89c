"""Objects as people know them: manifests, with what the engine knows of them put in.

Plain JSON values, made when somebody asks. A manifest that was taken before a check knew better may be no proper
JSON inside; then its head alone is shown.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

import msgspec

from events import decisions, job_statuses, json_paths, times
from projections import kind_statuses, owners
from projections.bindings import Binding
from projections.rebalancers import Observed, Rebalancer, workload_order

Json = dict[str, object]

_JOB: Final = ("batch/v1", "Job")
_POLICY_DOMAINS: Final = {
    "PropagationPolicy": "propagationpolicy.karmada.io",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io",
}


class ObjectRow(NamedTuple):
    """An object as its table holds it; ``labels`` are JSON, or empty."""

    key: str
    kind: str
    namespace: str
    name: str
    api_version: str
    number: int
    version: int
    generation: int
    uid: str
    created_ms: int
    labels: str
    manifest: bytes
    status: bytes = b""
    owners: bytes = b""


def instant(at_ms: int) -> str | None:
    """The instant as objects show it, whole seconds; None for 0, which means that nobody said."""
    return times.to_seconds_text(at_ms) if at_ms else None


def object_document(
    row: ObjectRow, binding: Binding | None, rebalancer: Rebalancer | None, *, managed: bool = False
) -> Json:
    """The object, with its status: that of its binding for a template, its own for a rebalancer.

    What somebody wrote into a status is shown as far as the engine says nothing of it.

    ``managed`` shows who owns which fields.
    """
    document = _manifest(row)
    metadata = _part(document, "metadata")
    document["metadata"] = metadata
    # What people send of this is what they once read; the fold knows better.
    document.pop("status", None)
    for name in ("selfLink",) if managed else ("managedFields", "selfLink"):
        metadata.pop(name, None)
    metadata["name"] = row.name
    metadata |= {"namespace": row.namespace} if row.namespace else {}
    metadata |= identity(row.uid, row.generation, row.created_ms, shown_number(row, binding, rebalancer))
    if row.kind in _POLICY_DOMAINS:
        label = f"{_POLICY_DOMAINS[row.kind]}/permanent-id"
        metadata["labels"] = {**_part(metadata, "labels"), label: row.uid}
    if row.kind == "Namespace":
        document["spec"] = {"finalizers": ["kubernetes"], **_part(document, "spec")}
        document["status"] = {"phase": "Terminating" if "deletionTimestamp" in metadata else "Active"}
        name_label = {"kubernetes.io/metadata.name": row.name}
        metadata["labels"] = {**_part(metadata, "labels"), **name_label}
    if row.kind == "WorkloadRebalancer":
        document["status"] = rebalancer_status(rebalancer) if rebalancer is not None else {}
    elif row.status:
        document["status"] = decoded(row.status)
    if row.kind != "WorkloadRebalancer" and binding is not None and binding.template_uid == row.uid:
        _overlay(document, metadata, binding)
    if managed:
        _own(document, metadata, row, binding)
    return document


def shown_number(row: ObjectRow, binding: Binding | None, rebalancer: Rebalancer | None) -> int:
    """The number of the newest record that changed what is shown of an object."""
    if rebalancer is not None and rebalancer.uid == row.uid:
        return max(row.number, rebalancer.number)
    if binding is not None and binding.template_uid == row.uid:
        return max(row.number, binding.template_number)
    return row.number


def identity(uid: str, generation: int, created_ms: int, number: int) -> Json:
    """What the fold knows of each object; ``number`` is that of the last record that changed what is shown."""
    return {
        "uid": uid,
        "generation": generation,
        "creationTimestamp": instant(created_ms),
        "resourceVersion": str(number),
    }


def claim_marks(binding: Binding) -> tuple[Json, Json]:
    """The labels and annotations by which a claim shows."""
    claim = binding.claim
    if claim is None:
        return {}, {}
    domain = _POLICY_DOMAINS.get(claim.policy.kind, f"{claim.policy.kind.lower()}.karmada.io")
    annotations: Json = {f"{domain}/name": claim.policy.name}
    if claim.policy.namespace:
        annotations[f"{domain}/namespace"] = claim.policy.namespace
    return {f"{domain}/permanent-id": claim.permanent_id}, annotations


def rebalancer_status(rebalancer: Rebalancer) -> Json:
    """The status of a WorkloadRebalancer: no finishTime before it finished, no result while one is awaited."""
    finish = {"finishTime": instant(rebalancer.finish_ms)} if rebalancer.finish_ms else {}
    observed = sorted(rebalancer.observed.values(), key=_order)
    return {
        **finish,
        "observedGeneration": rebalancer.observed_generation,
        "observedWorkloads": [_observed(each) for each in observed],
    }


def template_status(binding: Binding) -> Json:
    """The status of a template: the sums over all clusters, and what its kind's rule or interpreter puts together."""
    # A Job has other numbers.
    kind = binding.template.api_version, binding.template.kind
    has_counts = binding.replicas is not None and kind != _JOB
    if binding.status is None:
        return {}
    said = kind_statuses.over_all(binding.template, binding.status.members)
    if said is not None:
        return said
    if not (has_counts or binding.status.fields):
        return {}
    found: Json = {}
    for path, value in binding.status.fields.items():
        put(found, json_paths.names(path), value)
    members = binding.status.members
    if kind == _JOB:
        return found | _job_end(members)
    if not has_counts:
        return found | {"observedGeneration": binding.status.observed_generation}
    return found | {
        "observedGeneration": binding.status.observed_generation,
        "replicas": sum(member.replicas for member in members),
        "updatedReplicas": sum(member.updated for member in members),
        "readyReplicas": sum(member.ready for member in members),
        "availableReplicas": sum(member.available for member in members),
    }


def _job_end(members: Sequence[decisions.MemberStatus]) -> Json:
    """How a Job ended, once it did: failed in one cluster it has failed, complete it is where all of them are."""
    failed = [each.cluster for each in members if each.values.get(job_statuses.FAILED) == job_statuses.IS_SO]
    if failed:
        message = f"The Job failed in {', '.join(failed)}"
        condition = {"type": "Failed", "status": "True", "reason": "JobFailed", "message": message}
        return {"conditions": [condition]}
    if not members or not all(
        each.values.get(job_statuses.COMPLETE) == job_statuses.IS_SO for each in members
    ):
        return {}
    times = [text for each in members if (text := each.values.get(job_statuses.COMPLETED))]
    condition = {"type": "Complete", "status": "True", "reason": "Completed", "message": "Job completed"}
    if not times:
        return {"conditions": [condition]}
    last = max(times)
    return {"completionTime": last, "conditions": [{**condition, "lastTransitionTime": last}]}


def put(status: Json, names: tuple[str, ...], value: int | str) -> None:
    """Puts a value where it stood in a status; what stood in lists is left out."""
    for name in names[:-1]:
        below = status.setdefault(name, {})
        if not isinstance(below, dict):
            return
        status = cast("Json", below)
    if names:
        status[names[-1]] = value


def _manifest(row: ObjectRow) -> Json:
    try:
        return msgspec.json.decode(row.manifest, type=Json)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {"apiVersion": row.api_version, "kind": row.kind}


def decoded(raw: bytes) -> Json:
    """An object of JSON as it was taken; empty where it is no proper JSON inside."""
    try:
        return msgspec.json.decode(raw, type=Json)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def _part(document: Json, name: str) -> Json:
    found = document.get(name)
    return dict(cast("Json", found)) if isinstance(found, dict) else {}


def _overlay(document: Json, metadata: Json, binding: Binding) -> None:
    labels, annotations = claim_marks(binding)
    if labels:
        metadata["labels"] = {**_part(metadata, "labels"), **labels}
        metadata["annotations"] = {**_part(metadata, "annotations"), **annotations}
    if said := template_status(binding):
        document["status"] = {**_part(document, "status"), **said}


def _own(document: Json, metadata: Json, row: ObjectRow, binding: Binding | None) -> None:
    """Shows who wrote the status, beside those who wrote the object."""
    written = owners.entries(owners.decode(row.owners))
    said: Json = {}
    if row.kind in ("Namespace", "WorkloadRebalancer"):
        said = _part(document, "status")
    elif binding is not None and binding.template_uid == row.uid:
        said = template_status(binding)
    if said:
        written.append(
            owners.of_engine(row.api_version, owners.STATUS, said, subresource=owners.STATUS),
        )
    if written:
        held = metadata.get("managedFields")
        metadata["managedFields"] = [
            *(cast("list[object]", held) if isinstance(held, list) else ()),
            *written,
        ]


def _order(observed: Observed) -> str:
    return workload_order(observed.workload)


def _observed(observed: Observed) -> Json:
    shown: Json = {"reason": observed.reason} if observed.reason else {}
    if observed.result:
        shown["result"] = observed.result
    return {**shown, "workload": cast("Json", msgspec.to_builtins(observed.workload))}
