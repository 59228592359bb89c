"""The kinds that mean something to the engine, and where an object of any kind goes.

A kind is known by its apiVersion and kind. What is not listed is a template, to be propagated as it stands;
kinds of the control plane that the engine derives, or doesn't have, are refused rather than stored without
effect.
"""

from typing import Final, Literal

from msgspec import Struct

Route = Literal["template", "policy", "namespace", "interpreter", "configuration", "rebalancer", "cluster"]

POLICY_GROUP: Final = "policy.karmada.io/v1alpha1"
APPS_GROUP: Final = "apps.karmada.io/v1alpha1"
CLUSTER_GROUP: Final = "cluster.karmada.io/v1alpha1"
WORK_GROUP: Final = "work.karmada.io/v1alpha2"
CONFIG_GROUP: Final = "config.reballast.io/v1alpha1"
AUTOSCALING_GROUP: Final = "autoscaling.karmada.io/v1alpha1"
NETWORKING_GROUP: Final = "networking.karmada.io/v1alpha1"
INTERPRETERS_GROUP: Final = "config.karmada.io/v1alpha1"
REMEDY_GROUP: Final = "remedy.karmada.io/v1alpha1"


class Kind(Struct, frozen=True, kw_only=True):
    """One kind: its names, as kubectl knows them, whether its objects live in a namespace, and its route."""

    api_version: str
    kind: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    route: Route = "template"

    @property
    def group(self) -> str:
        """The API group; empty for the core."""
        group, slash, _version = self.api_version.partition("/")
        return group if slash else ""

    @property
    def resource(self) -> str:
        """The name that kubectl prints: ``deployment.apps``, ``configmap``."""
        return f"{self.kind.lower()}.{self.group}" if self.group else self.kind.lower()


def _kind(api_version: str, kind: str, plural: str, *short: str) -> Kind:
    return Kind(api_version=api_version, kind=kind, plural=plural, short=short)


def _kept(api_version: str, kind: str, plural: str, *short: str, namespaced: bool = True) -> Kind:
    return Kind(
        api_version=api_version,
        kind=kind,
        plural=plural,
        short=short,
        namespaced=namespaced,
        route="configuration",
    )


def _global(api_version: str, kind: str, plural: str, *short: str, route: Route = "template") -> Kind:
    return Kind(api_version=api_version, kind=kind, plural=plural, short=short, namespaced=False, route=route)


_RBAC: Final = "rbac.authorization.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"

KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        api_version=POLICY_GROUP,
        kind="PropagationPolicy",
        plural="propagationpolicies",
        short=("pp",),
        route="policy",
    ),
    _global(POLICY_GROUP, "ClusterPropagationPolicy", "clusterpropagationpolicies", "cpp", route="policy"),
    _global(APPS_GROUP, "WorkloadRebalancer", "workloadrebalancers", "wr", route="rebalancer"),
    _global(CLUSTER_GROUP, "Cluster", "clusters", route="cluster"),
    _global(CONFIG_GROUP, "ReplicaInterpreter", "replicainterpreters", "ri", route="interpreter"),
    _kept(POLICY_GROUP, "OverridePolicy", "overridepolicies", "op"),
    _kept(POLICY_GROUP, "ClusterOverridePolicy", "clusteroverridepolicies", "cop", namespaced=False),
    _kept(POLICY_GROUP, "ClusterTaintPolicy", "clustertaintpolicies", namespaced=False),
    _kept(POLICY_GROUP, "FederatedResourceQuota", "federatedresourcequotas"),
    _kept(
        INTERPRETERS_GROUP,
        "ResourceInterpreterCustomization",
        "resourceinterpretercustomizations",
        "ric",
        namespaced=False,
    ),
    _kept(AUTOSCALING_GROUP, "FederatedHPA", "federatedhpas", "fhpa"),
    _kept(AUTOSCALING_GROUP, "CronFederatedHPA", "cronfederatedhpas", "cronfhpa"),
    _kept(NETWORKING_GROUP, "MultiClusterService", "multiclusterservices", "mcs"),
    _kept(NETWORKING_GROUP, "MultiClusterIngress", "multiclusteringresses", "mci"),
    _kept(REMEDY_GROUP, "Remedy", "remedies", namespaced=False),
    _global("v1", "Namespace", "namespaces", "ns", route="namespace"),
    _kind("apps/v1", "Deployment", "deployments", "deploy"),
    _kind("apps/v1", "StatefulSet", "statefulsets", "sts"),
    _kind("apps/v1", "DaemonSet", "daemonsets", "ds"),
    _kind("apps/v1", "ReplicaSet", "replicasets", "rs"),
    _kind("batch/v1", "Job", "jobs"),
    _kind("batch/v1", "CronJob", "cronjobs", "cj"),
    _kind("v1", "ConfigMap", "configmaps", "cm"),
    _kind("v1", "Secret", "secrets"),
    _kind("v1", "Service", "services", "svc"),
    _kind("v1", "ServiceAccount", "serviceaccounts", "sa"),
    _kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"),
    _kind("v1", "Pod", "pods", "po"),
    _kind("v1", "ResourceQuota", "resourcequotas", "quota"),
    _kind("v1", "LimitRange", "limitranges", "limits"),
    _kind("networking.k8s.io/v1", "Ingress", "ingresses", "ing"),
    _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"),
    _kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"),
    _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb"),
    _kind(_RBAC, "Role", "roles"),
    _kind(_RBAC, "RoleBinding", "rolebindings"),
    _global(_RBAC, "ClusterRole", "clusterroles"),
    _global(_RBAC, "ClusterRoleBinding", "clusterrolebindings"),
    _global(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "crd", "crds"
    ),
    _global("v1", "PersistentVolume", "persistentvolumes", "pv"),
    _global(_STORAGE, "StorageClass", "storageclasses", "sc"),
    _global("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc"),
    _global("networking.k8s.io/v1", "IngressClass", "ingressclasses"),
)

DERIVED: Final[tuple[Kind, ...]] = (
    _kind(WORK_GROUP, "ResourceBinding", "resourcebindings", "rb"),
    _global(WORK_GROUP, "ClusterResourceBinding", "clusterresourcebindings", "crb"),
    _kind("work.karmada.io/v1alpha1", "Work", "works", "wk"),
)
"""Kinds that the engine makes; nobody writes them."""

_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}
_CONTROL_PLANE: Final = (".karmada.io", ".reballast.io")


def known(api_version: str, kind: str) -> Kind | None:
    """The listed kind with this name."""
    return _BY_NAME.get((api_version, kind))


def route_of(api_version: str, kind: str) -> Route:
    """Where an object of this kind goes; a kind that is not listed is a template."""
    found = _BY_NAME.get((api_version, kind))
    return found.route if found else "template"


def is_namespaced(api_version: str, kind: str) -> bool:
    """Whether objects of this kind live in a namespace; kinds that are not listed do."""
    found = _BY_NAME.get((api_version, kind))
    return found.namespaced if found else True


def refused(api_version: str, kind: str) -> str:
    """Why objects of this kind can't be written; empty where they can."""
    if (api_version, kind) in _BY_NAME:
        return ""
    group = api_version.partition("/")[0]
    if any(kind == derived.kind and group == derived.group for derived in DERIVED):
        return f"a {kind} is made by the engine; write a template and a policy instead"
    if not f".{group}".endswith(_CONTROL_PLANE):
        return ""
    versions = [entry.api_version for entry in KINDS if entry.kind == kind and entry.group == group]
    if versions:
        return f"{kind} is known as {versions[0]}, not as {api_version}"
    return f"this control plane has no {kind} of {api_version}"


def find(word: str) -> Kind | None:
    """The kind that a word means, in any case: kind, plural, short name, or ``plural.group``."""
    name, _dot, group = word.lower().partition(".")
    for kind in (*KINDS, *DERIVED):
        if name in {kind.kind.lower(), kind.plural, *kind.short} and group in {"", kind.group}:
            return kind
    return None
