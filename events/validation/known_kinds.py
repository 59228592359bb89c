"""The kinds that the engine knows, and the route of an object of any kind.

A kind is identified by apiVersion and kind. An unlisted kind is a template and is propagated unchanged. Other
kinds of the control plane's own API groups are refused, not stored without effect.
"""

from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct

from events import keys

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
SEARCH_GROUP: Final = "search.karmada.io/v1alpha1"


class Kind(Struct, frozen=True, kw_only=True):
    """A kind: its names in kubectl, whether its objects are namespaced, and its route.

    The route selects the topic and the event type of an object's writes.
    """

    api_version: str
    kind: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    route: Route = "template"

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return keys.group_of(self.api_version)

    @property
    def resource(self) -> str:
        """The resource name that kubectl prints: ``deployment.apps``, ``configmap``."""
        return keys.resource_name(self.api_version, self.kind)

    def path(self, namespace: str = "", name: str = "") -> str:
        """The URL path of all objects of this kind, of those in a namespace, or of one object."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        namespace_path = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{root}{namespace_path}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


def _kind(api_version: str, kind: str, plural: str, *short: str) -> Kind:
    return Kind(api_version=api_version, kind=kind, plural=plural, short=short)


def _configuration(api_version: str, kind: str, plural: str, *short: str, namespaced: bool = True) -> Kind:
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

CLUSTER: Final = _global(CLUSTER_GROUP, "Cluster", "clusters", route="cluster")
REBALANCER: Final = _global(APPS_GROUP, "WorkloadRebalancer", "workloadrebalancers", "wr", route="rebalancer")

KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        api_version=POLICY_GROUP,
        kind="PropagationPolicy",
        plural="propagationpolicies",
        short=("pp",),
        route="policy",
    ),
    _global(POLICY_GROUP, "ClusterPropagationPolicy", "clusterpropagationpolicies", "cpp", route="policy"),
    REBALANCER,
    CLUSTER,
    _global(CONFIG_GROUP, "ReplicaInterpreter", "replicainterpreters", "ri", route="interpreter"),
    _configuration(POLICY_GROUP, "OverridePolicy", "overridepolicies", "op"),
    _configuration(POLICY_GROUP, "ClusterOverridePolicy", "clusteroverridepolicies", "cop", namespaced=False),
    _configuration(POLICY_GROUP, "ClusterTaintPolicy", "clustertaintpolicies", namespaced=False),
    _configuration(POLICY_GROUP, "FederatedResourceQuota", "federatedresourcequotas"),
    _configuration(
        INTERPRETERS_GROUP,
        "ResourceInterpreterCustomization",
        "resourceinterpretercustomizations",
        "ric",
        namespaced=False,
    ),
    _configuration(AUTOSCALING_GROUP, "FederatedHPA", "federatedhpas", "fhpa"),
    _configuration(AUTOSCALING_GROUP, "CronFederatedHPA", "cronfederatedhpas", "cronfhpa"),
    _configuration(NETWORKING_GROUP, "MultiClusterService", "multiclusterservices", "mcs"),
    _configuration(NETWORKING_GROUP, "MultiClusterIngress", "multiclusteringresses", "mci"),
    _configuration(REMEDY_GROUP, "Remedy", "remedies", namespaced=False),
    _configuration(SEARCH_GROUP, "ResourceRegistry", "resourceregistries", namespaced=False),
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
"""Kinds whose objects the engine derives from the log; clients cannot write them."""

_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}
_OWN_GROUPS: Final = {
    kind.group for kind in (*KINDS, *DERIVED) if kind.group.endswith((".karmada.io", ".reballast.io"))
}
"""API groups of the control plane. Users may have other groups that end with the same domains."""


def of(api_version: str, kind: str) -> Kind | None:
    return _BY_NAME.get((api_version, kind))


def route_of(api_version: str, kind: str) -> Route:
    """Return the route of an object of this kind; unlisted kinds are templates."""
    known_kind = _BY_NAME.get((api_version, kind))
    return known_kind.route if known_kind else "template"


def plural_of(api_version: str, kind: str) -> str:
    """Return the plural name of a kind; that of an unlisted kind follows Kubernetes' rule for English words."""
    known_kind = _BY_NAME.get((api_version, kind))
    if known_kind is not None:
        return known_kind.plural
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def refused(api_version: str, kind: str) -> str:
    """Return the reason why objects of this kind cannot be written; empty if they can."""
    if (api_version, kind) in _BY_NAME:
        return ""
    group = api_version.partition("/")[0]
    if any(kind == derived.kind and group == derived.group for derived in DERIVED):
        return f"a {kind} is made by the engine; write a template and a policy instead"
    if group not in _OWN_GROUPS:
        return ""
    versions = [entry.api_version for entry in KINDS if entry.kind == kind and entry.group == group]
    if versions:
        return f"{kind} is known as {versions[0]}, not as {api_version}"
    return f"this control plane has no {kind} of {api_version}"


def find(word: str) -> Kind | None:
    """Return the kind with this kind name, plural, short name or ``plural.group``, in any letter case."""
    name, _dot, group = word.lower().partition(".")
    for kind in (*KINDS, *DERIVED):
        if name in {kind.kind.lower(), kind.plural, *kind.short} and group in {"", kind.group}:
            return kind
    return None
