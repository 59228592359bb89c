"""Rendering of works as Work objects (``work.karmada.io/v1alpha1``), each in the namespace of its cluster.

A Work contains the template with this cluster's replicas. Its resourceVersion is the number of the last
record that changed the rendered object: a decision, a report, the template, or an override policy. The
overriders that apply are listed in Karmada's annotations; the caller applies them.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, cast

import msgspec
from msgspec import Struct

from events import keys, shapes, vocabulary
from events.json_values import Json
from projections.documents import field_owners
from projections.documents.objects import ObjectRow, identity, instant, put
from projections.works import Work

API_VERSION: Final = "work.karmada.io/v1alpha1"
APPLIED: Final = {
    "ClusterOverridePolicy": "policy.karmada.io/applied-cluster-overrides",
    "OverridePolicy": "policy.karmada.io/applied-overrides",
}
"""Annotations that list the applied overriders by kind of policy, in the order of their application."""

_REPLICAS: Final = ("spec", "replicas")
_REPLICAS_AT: Final = {("batch/v1", "Job"): ("spec", "parallelism")}
_LETTERS: Final = 10
_NONE: Final[Mapping[shapes.OverrideRef, bytes]] = {}


def namespace_of(cluster: str) -> str:
    """Return the namespace of a cluster's works."""
    return vocabulary.EXECUTION_NAMESPACE_PREFIX + cluster


def cluster_of(namespace: str) -> str | None:
    """Return the cluster of a namespace of works; None for other namespaces."""
    prefix = vocabulary.EXECUTION_NAMESPACE_PREFIX
    return namespace.removeprefix(prefix) if namespace.startswith(prefix) else None


def name_of(work: Work) -> str:
    return name_for(work.template)


def name_for(ref: shapes.WorkloadRef) -> str:
    """Return the name of a template's works: the template's name and letters derived from its kind and namespace."""
    text = "-".join(part for part in (ref.namespace, ref.name, ref.kind.lower()) if part)
    return f"{ref.name.replace(':', '.')}-{_letters(text)}"


def work_object(
    cluster: str,
    work: Work,
    template: ObjectRow | None,
    policies: Mapping[shapes.OverrideRef, bytes] = _NONE,
) -> Json:
    """Return the work as an object.

    ``template`` is its template, or None if that was deleted; ``policies`` are the manifests of existing
    override policies.
    """
    ref = work.template
    namespace = namespace_of(cluster)
    bound = keys.binding_name(ref.kind, ref.name)
    annotations: Json = {"resourcebinding.karmada.io/name": bound}
    if ref.namespace:
        annotations["resourcebinding.karmada.io/namespace"] = ref.namespace
    else:
        annotations = {"clusterresourcebinding.karmada.io/name": bound}
    annotations |= _applied(work, policies)
    spec: Json = {
        "workload": {"manifests": [_manifest(work, template)]},
        **({"suspendDispatching": True} if work.suspended else {}),
    }
    status = _status(work)
    return {
        "apiVersion": API_VERSION,
        "kind": "Work",
        "metadata": {
            "name": name_of(work),
            "namespace": namespace,
            **identity(work.uid, work.generation, work.created_ms, work.number),
            "annotations": annotations,
            "finalizers": ["karmada.io/execution-controller"],
            "managedFields": field_owners.all_of_engine(API_VERSION, spec, status),
        },
        "spec": spec,
        "status": status,
    }


def _applied(work: Work, policies: Mapping[shapes.OverrideRef, bytes]) -> Json:
    rules_by_annotation: dict[str, list[Json]] = {}
    for ref in work.overrides:
        for overriders in _overriders(ref, policies.get(ref, b"{}")):
            mark = APPLIED.get(ref.kind, "")
            rules_by_annotation.setdefault(mark, []).append(
                {"policyName": ref.name, "overriders": overriders}
            )
    return {mark: msgspec.json.encode(rules).decode() for mark, rules in sorted(rules_by_annotation.items())}


def _overriders(ref: shapes.OverrideRef, manifest: bytes) -> Iterator[object]:
    """The overriders of the rules that apply; rules that the policy no longer has are left out.

    The policy may be newer than the work; the next work of the binding follows the new rules.
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


def _letters(text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=_LETTERS).digest()
    return "".join(vocabulary.SAFE_LETTERS[byte % len(vocabulary.SAFE_LETTERS)] for byte in digest)


def _manifest(work: Work, template: ObjectRow | None) -> Json:
    ref = work.template
    head: Json = {"apiVersion": ref.api_version, "kind": ref.kind}
    metadata: Json = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    if template is None:
        return {**head, "metadata": metadata}
    try:
        manifest = msgspec.json.decode(template.manifest, type=Json)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {**head, "metadata": metadata}
    template_metadata = cast("Json", manifest.get("metadata", {}))
    for name in ("labels", "annotations"):
        if name in template_metadata:
            metadata[name] = template_metadata[name]
    if work.labels:
        metadata["labels"] = {**cast("Json", metadata.get("labels") or {}), **work.labels}
    spec = manifest.get("spec")
    if work.replicas is not None and isinstance(spec, dict):
        declared = work.reading.replicas if work.reading else ""
        usual = _REPLICAS_AT.get((ref.api_version, ref.kind), _REPLICAS)
        path = tuple(declared.removeprefix(".").split(".")) if declared else usual
        put(manifest, path, work.replicas)
    manifest.pop("status", None)
    return {**manifest, "metadata": metadata}


def _status(work: Work) -> Json:
    if work.applied is None:
        return {}
    applied: Json = {
        "type": "Applied",
        "status": "True" if work.applied else "False",
        "reason": "AppliedSuccessful" if work.applied else "AppliedFailed",
        "message": "Manifest has been successfully applied"
        if work.applied
        else work.message or "The cluster has not applied it yet",
        "lastTransitionTime": instant(work.created_ms),
    }
    return {"conditions": [applied]}
