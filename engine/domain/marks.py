"""Names and marks (labels and annotations) by which Karmada's objects refer to one another.

A template has the marks of the policy that claims it. A binding and a Work have marks of their own. An object in a
cluster has the marks of its policy, binding and Work. The permanent id of a policy, binding or Work is its uid.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from events import keys, shapes, vocabulary
from events.json_values import list_at
from events.kube_objects import KubeObject
from events.validation import known_kinds

MANAGED: Final = "karmada.io/managed"
"""Label of all objects that a control plane manages in clusters."""

WORK_NAME: Final = "work.karmada.io/name"
WORK_NAMESPACE: Final = "work.karmada.io/namespace"
CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Label of templates whose number of replicas the member decides."""

APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
"""Annotation of bindings: the placement that the scheduler used last."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation of objects that kubectl applied."""

_ABORT: Final = "abort"
OVERWRITE: Final = "overwrite"

_POLICY_DOMAINS: Final = {
    "PropagationPolicy": "propagationpolicy.karmada.io",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io",
}
POLICY_IDS: Final = {kind: f"{domain}/permanent-id" for kind, domain in _POLICY_DOMAINS.items()}
"""Labels with the permanent id of a policy, by the policy's kind: on the policy, its templates and their bindings."""

POLICY_FINALIZERS: Final = {
    "PropagationPolicy": "karmada.io/propagation-policy-controller",
    "ClusterPropagationPolicy": "karmada.io/cluster-propagation-policy-controller",
}
"""The finalizer of a rendered policy, by its kind. It delays no deletion: the engine deletes policies at once."""

_POLICY_NAMES: Final = {kind: f"{domain}/name" for kind, domain in _POLICY_DOMAINS.items()}
_POLICY_NAMESPACE: Final = "propagationpolicy.karmada.io/namespace"
CLAIMS: Final = frozenset({*POLICY_IDS.values(), *_POLICY_NAMES.values(), _POLICY_NAMESPACE})
"""Labels and annotations of policies and claimed templates; the engine sets them when it renders an object."""

_BINDING: Final = "resourcebinding.karmada.io"
_CLUSTER_BINDING: Final = "clusterresourcebinding.karmada.io"
_WORK_ID: Final = "work.karmada.io/permanent-id"
_TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
_TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
_MANAGED_ANNOTATIONS: Final = "resourcetemplate.karmada.io/managed-annotations"
_MANAGED_LABELS: Final = "resourcetemplate.karmada.io/managed-labels"

LABELS: Final = (
    MANAGED,
    *POLICY_IDS.values(),
    f"{_BINDING}/permanent-id",
    f"{_CLUSTER_BINDING}/permanent-id",
    _WORK_ID,
)
"""All labels that mark an object in a cluster."""

ANNOTATIONS: Final = (
    *sorted(CLAIMS.difference(POLICY_IDS.values())),
    f"{_BINDING}/name",
    f"{_BINDING}/namespace",
    f"{_CLUSTER_BINDING}/name",
    WORK_NAME,
    WORK_NAMESPACE,
    CONFLICT_RESOLUTION,
    _TEMPLATE_UID,
    _TEMPLATE_GENERATION,
    _MANAGED_ANNOTATIONS,
    _MANAGED_LABELS,
)
"""All annotations that mark an object in a cluster."""

_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_FNV_MASK: Final = 0xFFFFFFFF

Texts = dict[str, str]


class Marks(NamedTuple):
    labels: Texts
    annotations: Texts


def claiming_policy(annotations: Mapping[str, object]) -> shapes.PolicyRef | None:
    """Return the policy that claims an object, by its annotations; None if none does."""
    for kind, mark in _POLICY_NAMES.items():
        if name := annotations.get(mark):
            namespace = annotations.get(_POLICY_NAMESPACE, "") if kind == "PropagationPolicy" else ""
            return shapes.PolicyRef(kind=kind, name=str(name), namespace=str(namespace))
    return None


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """The parts of a binding's claim that its Works show."""

    policy: shapes.PolicyRef | None = None
    policy_id: str = ""
    preserves: bool = False


NO_CLAIM: Final = Claim()


class MarkValues(Struct, frozen=True, kw_only=True):
    """Values for the labels and annotations of a template's object in a cluster; an empty value sets none."""

    template: shapes.WorkloadRef
    cluster: str
    claim: Claim = NO_CLAIM
    template_uid: str = ""
    template_generation: int = 0
    binding_uid: str = ""
    work_uid: str = ""
    overwrites: bool = False


def depended_by(key: str) -> str:
    """Return the name of the label of each binding on which the binding ``key`` depends."""
    return f"{_BINDING}/depended-by-{_safe_encoded(str(_fnv_1a(key)))}"


def conflict(template: shapes.WorkloadRef, cluster: str) -> str:
    """Return Karmada's message about an object that exists in a cluster and is not managed."""
    return (
        f"resource(kind={template.kind}, {template.namespace}/{template.name}) already exists in the cluster"
        f" {cluster} and the {CONFLICT_RESOLUTION} strategy value is empty, Karmada will not manage this resource"
    )


# Cached: the works of a template have the same name in all clusters, and each change of a work needs it.
@lru_cache(maxsize=1_024)
def work_name(kind: str, namespace: str, name: str) -> str:
    """Return the name of the Works of a template; it may be longer than Kubernetes allows, as in Karmada."""
    name = name.replace(":", ".").lower()
    text = "-".join(part for part in (namespace, name, kind) if part).lower()
    return f"{name}-{_safe_encoded(str(_fnv_1a(text)))}"


def work_namespace(cluster: str) -> str:
    """Return the namespace of a cluster's Works."""
    return vocabulary.EXECUTION_NAMESPACE_PREFIX + cluster


def of_claim(policy: shapes.PolicyRef, permanent_id: str) -> Marks:
    """Return the labels and annotations that a policy's claim sets on a template and on its binding."""
    domain = _POLICY_DOMAINS.get(policy.kind, f"{policy.kind.lower()}.karmada.io")
    annotations = {f"{domain}/name": policy.name}
    if policy.namespace:
        annotations[f"{domain}/namespace"] = policy.namespace
    return Marks({f"{domain}/permanent-id": permanent_id}, annotations)


def is_policy(value: KubeObject) -> bool:
    """Whether an object is a propagation policy, not one of a custom kind with that name."""
    return value.kind in POLICY_IDS and value.api_version == known_kinds.POLICY_GROUP


def with_policy_marks(uid: str, value: KubeObject) -> KubeObject:
    """Return a policy with its permanent-id label and, unless it is being deleted, its finalizer.

    Objects of other kinds are returned unchanged.
    """
    if not is_policy(value):
        return value
    kind = value.kind
    labels = {**value.labels, POLICY_IDS[kind]: uid}
    if "deletionTimestamp" in value.metadata:
        return value.with_metadata({"labels": labels})
    finalizer = POLICY_FINALIZERS[kind]
    own = (name for name in list_at(value.metadata, "finalizers") if name != finalizer)
    return value.with_metadata({"labels": labels, "finalizers": [*own, finalizer]})


def finalizers(value: KubeObject) -> list[str]:
    """Return the finalizers of an object except those in ``POLICY_FINALIZERS``."""
    shown = POLICY_FINALIZERS.values()
    return [str(name) for name in list_at(value.metadata, "finalizers") if name not in shown]


def of_binding(template: shapes.WorkloadRef, uid: str) -> Marks:
    """Return the label and annotations that refer to a template's binding; the binding itself has only the label."""
    domain = _BINDING if template.namespace else _CLUSTER_BINDING
    annotations = {f"{domain}/name": keys.binding_name(template.kind, template.name)}
    if template.namespace:
        annotations[f"{domain}/namespace"] = template.namespace
    return Marks({f"{domain}/permanent-id": uid} if uid else {}, annotations)


def of_work(mark_values: MarkValues) -> Marks:
    """Return the labels and annotations of a Work; a Work without a binding (of a namespace) has only its id label."""
    labels = {_WORK_ID: mark_values.work_uid} if mark_values.work_uid else {}
    if not mark_values.binding_uid:
        return Marks(labels, {})
    binding = of_binding(mark_values.template, mark_values.binding_uid)
    labels |= binding.labels
    annotations = dict(binding.annotations)
    annotations[CONFLICT_RESOLUTION] = OVERWRITE if mark_values.overwrites else _ABORT
    return Marks(labels, annotations)


def propagated(template_object: KubeObject, mark_values: MarkValues) -> KubeObject:
    """Return a template's object for a cluster, with all labels and annotations that Karmada sets on it."""
    claim, template = mark_values.claim, mark_values.template
    labels: Texts = {MANAGED: "true"}
    annotations: Texts = {
        WORK_NAME: work_name(template.kind, template.namespace, template.name),
        WORK_NAMESPACE: work_namespace(mark_values.cluster),
    }
    if mark_values.template_uid:
        annotations[_TEMPLATE_UID] = mark_values.template_uid
        if mark_values.binding_uid:
            annotations[_TEMPLATE_GENERATION] = str(mark_values.template_generation)
    applied = [of_work(mark_values)]
    if claim.policy is not None:
        applied.append(of_claim(claim.policy, claim.policy_id))
    for marks in applied:
        labels |= marks.labels
        annotations |= marks.annotations
    return with_managed_names(_merged(template_object, Marks(labels, annotations)))


def restored(value: KubeObject, original: KubeObject) -> KubeObject:
    """Return the object that overrides produced, with the marks of the original object: overrides cannot change them.

    Marks of the claiming policy are the exception: they are part of the template, so overrides may change them.
    """
    labels, annotations = (
        {name: str(texts[name]) for name in names if name in texts and name not in CLAIMS}
        for names, texts in ((LABELS, original.labels), (ANNOTATIONS, original.annotations))
    )
    return with_managed_names(_merged(value, Marks(labels, annotations)))


def with_managed_names(value: KubeObject) -> KubeObject:
    """Return the object with two annotations that list the names of all its labels and annotations."""
    names = {*value.annotations, _MANAGED_ANNOTATIONS, _MANAGED_LABELS}
    lists = {_MANAGED_ANNOTATIONS: ",".join(sorted(names)), _MANAGED_LABELS: ",".join(sorted(value.labels))}
    return _merged(value, Marks({}, lists))


def _merged(value: KubeObject, marks: Marks) -> KubeObject:
    labels: Mapping[str, object] = {**value.labels, **marks.labels}
    annotations = {**value.annotations, **marks.annotations}
    return value.with_metadata({**({"labels": labels} if labels else {}), "annotations": annotations})


def _fnv_1a(text: str) -> int:
    """Return the 32-bit FNV-1a hash of a text."""
    number = _FNV_OFFSET
    for byte in text.encode():
        number = ((number ^ byte) * _FNV_PRIME) & _FNV_MASK
    return number


def _safe_encoded(text: str) -> str:
    """Replace each character by a letter that generated names may contain, as SafeEncodeString of Kubernetes does."""
    letters = vocabulary.SAFE_LETTERS
    return "".join(letters[ord(character) % len(letters)] for character in text)
