"""Works as Work objects (``work.karmada.io/v1alpha1``), each in the namespace of its cluster.

What stands in a work is the template with this cluster's replicas; its own resourceVersion is that of the decision,
so what the cluster reports of it is read with it, but does not move it.
"""

import hashlib
from typing import Final, cast

import msgspec

from events import keys
from projections.bindings import Binding
from projections.documents import Json, ObjectRow, identity, instant
from projections.works import Work

API_VERSION: Final = "work.karmada.io/v1alpha1"
_NAMESPACE: Final = "karmada-es-"
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LETTERS: Final = 10


def namespace_of(cluster: str) -> str:
    """The namespace of a cluster's works."""
    return _NAMESPACE + cluster


def cluster_of(namespace: str) -> str | None:
    """The cluster that a namespace of works belongs to; None for other namespaces."""
    return namespace.removeprefix(_NAMESPACE) if namespace.startswith(_NAMESPACE) else None


def name_of(work: Work) -> str:
    """The name of a work: that of the template, and letters that tell kinds and namespaces apart."""
    ref = work.template
    whole = "-".join(part for part in (ref.namespace, ref.name, ref.kind.lower()) if part)
    return f"{ref.name.replace(':', '.')}-{_letters(whole)}"


def work_object(cluster: str, work: Work, template: ObjectRow | None, binding: Binding | None) -> Json:
    """The work as an object; ``template`` and ``binding`` are what it follows from, as far as they stand."""
    ref = work.template
    namespace = namespace_of(cluster)
    bound = keys.binding_name(ref.kind, ref.name)
    annotations: Json = {"resourcebinding.karmada.io/name": bound}
    if ref.namespace:
        annotations["resourcebinding.karmada.io/namespace"] = ref.namespace
    else:
        annotations = {"clusterresourcebinding.karmada.io/name": bound}
    return {
        "apiVersion": API_VERSION,
        "kind": "Work",
        "metadata": {
            "name": name_of(work),
            "namespace": namespace,
            **identity(work.uid, work.generation, work.created_ms, work.number),
            "annotations": annotations,
            "finalizers": ["karmada.io/execution-controller"],
        },
        "spec": {
            "workload": {"manifests": [_manifest(work, template)]},
            **({"suspendDispatching": True} if work.suspended else {}),
        },
        "status": _status(cluster, work, binding),
    }


def _letters(text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=_LETTERS).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def _manifest(work: Work, template: ObjectRow | None) -> Json:
    ref = work.template
    head: Json = {"apiVersion": ref.api_version, "kind": ref.kind}
    metadata: Json = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    if template is None:
        return {**head, "metadata": metadata}
    try:
        found = msgspec.json.decode(template.manifest, type=Json)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {**head, "metadata": metadata}
    held = cast("Json", found.get("metadata", {}))
    for name in ("labels", "annotations"):
        if name in held:
            metadata[name] = held[name]
    spec = found.get("spec")
    if work.replicas is not None and isinstance(spec, dict):
        found["spec"] = {**cast("Json", spec), "replicas": work.replicas}
    found.pop("status", None)
    return {**found, "metadata": metadata}


def _status(cluster: str, work: Work, binding: Binding | None) -> Json:
    status = binding.status if binding is not None else None
    for member in () if status is None else status.members:
        if member.cluster == cluster:
            applied: Json = {
                "type": "Applied",
                "status": "True" if member.applied else "False",
                "reason": "AppliedSuccessful" if member.applied else "AppliedFailed",
                "message": "Manifest has been successfully applied"
                if member.applied
                else "The cluster has not applied it yet",
                "lastTransitionTime": instant(work.created_ms),
            }
            return {"conditions": [applied]}
    return {}
