"""Bootstrap ClusterRoles and bindings: those of every Kubernetes API server, and those of Karmada.

From the published API. A stored object with the same name replaces the bootstrap object.
"""

from collections.abc import Sequence
from typing import Final

from engine.kubeapi.rights import parsing
from engine.kubeapi.rights.parsing import API_VERSION, GROUP
from engine.kubeapi.rights.rbac import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, Rule
from events.json_values import Json
from events.kube_objects import KubeObject


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_KARMADA: Final = "system:karmada:"
_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_DISCOVERY: Final = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
)
_PUBLIC: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_KARMADA_STATUSES: Final = {
    "autoscaling.karmada.io": "cronfederatedhpas federatedhpas",
    "multicluster.x-k8s.io": "serviceexports serviceimports",
    "networking.karmada.io": "multiclusteringresses multiclusterservices",
    "work.karmada.io": "resourcebindings works",
}
"""Resources of Karmada with a subresource ``status``, by API group."""

_EDITED_POLICIES: Final = _split("overridepolicies propagationpolicies")
# A quota limits the editors of its namespace, so they may not change it.
_VIEWED_POLICIES: Final = ("federatedresourcequotas", *_EDITED_POLICIES)
_VIEWED: Final = _split(
    "configmaps endpoints events limitranges namespaces persistentvolumeclaims "
    "persistentvolumeclaims/status pods pods/log pods/status replicationcontrollers "
    "replicationcontrollers/scale replicationcontrollers/status resourcequotas resourcequotas/status "
    "serviceaccounts services services/status bindings namespaces/status"
)
# Without endpoints: with them an editor could send traffic of a Service to pods of other namespaces (CVE-2021-25740).
_EDITED: Final = _split(
    "configmaps events persistentvolumeclaims pods pods/attach pods/exec pods/portforward pods/proxy "
    "replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy"
)
_CONNECTED: Final = _split("pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy")
_CLAIMS: Final = ("resourceclaims", "resourceclaimtemplates")
_VIEWED_APPS: Final = _split(
    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
    "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
)
_EDITED_APPS: Final = _split(
    "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
    "statefulsets statefulsets/scale"
)


def objects() -> list[KubeObject]:
    """Return all bootstrap objects, without uid and resourceVersion."""
    return [*_roles(), *_bindings(), *_of_cluster_info(), *_of_agents(), *_of_registration()]


def _roles() -> list[KubeObject]:
    everything = [_rule(("*",), ("*",), ("*",)), Rule(verbs=("*",), paths=("*",))]
    reviews = [
        _rule(
            ("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
        ),
        _rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    ]
    return [
        _role("cluster-admin", everything),
        _aggregated_role("admin"),
        _aggregated_role("edit", "admin"),
        _aggregated_role("view", "edit"),
        _role("system:aggregate-to-admin", _admin(), "admin"),
        _role("system:aggregate-to-edit", _edit(), "edit"),
        _role("system:aggregate-to-view", _view(), "view"),
        _role("karmada-edit", _of_karmada(_CHANGE, _EDITED_POLICIES), "edit"),
        _role("karmada-view", _of_karmada(_READ, _VIEWED_POLICIES), "view"),
        _role("system:basic-user", reviews),
        _role("system:discovery", [Rule(verbs=("get",), paths=_DISCOVERY)]),
        _role("system:public-info-viewer", [Rule(verbs=("get",), paths=_PUBLIC)]),
    ]


def _of_cluster_info() -> list[KubeObject]:
    """Return the rights to read ``cluster-info`` without credentials; ``karmadactl register`` reads it first."""
    rule = Rule(verbs=("get",), groups=("",), resources=("configmaps",), names=("cluster-info",))
    return _of_user(ANONYMOUS, f"{_KARMADA}bootstrap-signer-clusterinfo", "kube-public", rule)


def _of_agents() -> list[KubeObject]:
    """Return the rights to request an agent's certificate with a bootstrap token, and the rights of the agent."""
    requests, approved = "certificatesigningrequests", f"{_KARMADA}certificatesigningrequest:"
    group = ("certificates.k8s.io",)
    names = {
        f"{_KARMADA}agent-bootstrapper": _rule(("create", "get"), group, (requests,)),
        f"{approved}autoapprover": _rule(("create",), group, (f"{requests}/clusteragent",)),
        f"{approved}selfautoapprover": _rule(("create",), group, (f"{requests}/selfclusteragent",)),
        f"{_KARMADA}agents-cluster-creator": _rule(
            ("get", "list", "create"), ("cluster.karmada.io",), ("clusters",)
        ),
    }
    tokens, agents = "system:bootstrappers:karmada:default-cluster-token", "system:karmada:agents"
    bootstrapper, approver, self_approver, creator = names
    return [
        *(_role(name, [rule]) for name, rule in names.items()),
        _binding(bootstrapper, tokens, name=f"{_KARMADA}agent-bootstrap"),
        _binding(approver, tokens, name=f"{_KARMADA}agent-autoapprove-bootstrap"),
        _binding(self_approver, agents, name=f"{_KARMADA}agent-autoapprove-certificate-rotation"),
        _binding(creator, agents),
    ]


def _of_registration() -> list[KubeObject]:
    """Return the rights with which ``karmadactl register`` prepares a cluster and writes the roles of its agent.

    With any bootstrap token a client can get a certificate of the user that has these rights. In Karmada that user has
    all rights, but fewer suffice. A client may write a role only if it has the rights in that role, so the rights
    here include those of the agent's roles.
    """
    user, name = f"{_KARMADA}agent:rbac-generator", f"{_KARMADA}agent-rbac-generator"
    kinds = ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
    interpreters = ("resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations")
    rules = [
        _rule(("create", "get", "update", "delete"), (GROUP,), kinds),
        _rule(("create", "delete", "get", "list", "watch"), ("cluster.karmada.io",), ("clusters",)),
        _rule(("update",), ("cluster.karmada.io",), ("clusters/status",)),
        _rule(_READ, ("config.karmada.io",), interpreters),
        _rule(("create", "get"), ("",), ("namespaces",)),
        _rule(("create", "get", "update"), ("coordination.k8s.io",), ("leases",)),
        _rule(("create", "delete", "get"), ("certificates.k8s.io",), ("certificatesigningrequests",)),
        _rule(("list", "watch"), ("",), ("services",)),
        _rule(("create", "patch", "update"), ("",), ("events",)),
        _rule(("create", "delete", "get", "list", "update", "watch"), ("work.karmada.io",), ("works",)),
        _rule(("patch", "update"), ("work.karmada.io",), ("works/status",)),
    ]
    of_secrets = _rule(("create", "get", "patch"), ("",), ("secrets",))
    return [
        _role(name, rules),
        _binding(name).with_fields({"subjects": [_reference("User", user)]}),
        *_of_user(user, f"{name}-secret", "karmada-cluster", of_secrets),
    ]


def _bindings() -> list[KubeObject]:
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:basic-user", AUTHENTICATED),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
    ]


def _admin() -> list[Rule]:
    return [
        _rule((*_CHANGE, *_READ), (GROUP,), ("rolebindings", "roles")),
        _rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",)),
    ]


def _edit() -> list[Rule]:
    return [
        _rule(_READ, ("",), _CONNECTED),
        _rule(("impersonate",), ("",), ("serviceaccounts",)),
        _rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token")),
        _rule(_CHANGE, ("",), _EDITED),
        _rule(_CHANGE, ("apps",), _EDITED_APPS),
        _rule(_CHANGE, ("autoscaling",), ("horizontalpodautoscalers",)),
        _rule(_CHANGE, ("batch",), ("cronjobs", "jobs")),
        _rule(_CHANGE, ("networking.k8s.io",), ("ingresses", "networkpolicies")),
        _rule(_CHANGE, ("policy",), ("poddisruptionbudgets",)),
        _rule(_CHANGE, ("resource.k8s.io",), _CLAIMS),
        _rule((*_CHANGE, *_READ), ("coordination.k8s.io",), ("leases",)),
    ]


def _view() -> list[Rule]:
    return [
        _rule(_READ, ("",), _VIEWED),
        _rule(_READ, ("apps",), _VIEWED_APPS),
        _rule(_READ, ("autoscaling",), ("horizontalpodautoscalers", "horizontalpodautoscalers/status")),
        _rule(_READ, ("batch",), ("cronjobs", "cronjobs/status", "jobs", "jobs/status")),
        _rule(_READ, ("discovery.k8s.io",), ("endpointslices",)),
        _rule(_READ, ("networking.k8s.io",), ("ingresses", "ingresses/status", "networkpolicies")),
        _rule(_READ, ("policy",), ("poddisruptionbudgets", "poddisruptionbudgets/status")),
        _rule(_READ, ("resource.k8s.io",), (*_CLAIMS, "resourceclaims/status")),
    ]


def _of_karmada(verbs: Sequence[str], policies: Sequence[str]) -> list[Rule]:
    rules = [
        _rule(verbs, (group,), [part for plural in _split(plurals) for part in (plural, f"{plural}/status")])
        for group, plurals in _KARMADA_STATUSES.items()
    ]
    return [*rules, _rule(verbs, ("policy.karmada.io",), policies)]


def _rule(verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str]) -> Rule:
    return Rule(verbs=tuple(verbs), groups=tuple(groups), resources=tuple(resources))


def _role(name: str, rules: list[Rule], aggregated_by: str = "") -> KubeObject:
    role = _object("ClusterRole", {"name": name}, {"rules": [parsing.shown(rule) for rule in rules]})
    return role.with_metadata({"labels": {**role.labels, **_label(aggregated_by)}}) if aggregated_by else role


def _aggregated_role(name: str, aggregated_by: str = "") -> KubeObject:
    """Return a ClusterRole that aggregates all roles with its aggregation label (``_label``)."""
    rule = {"clusterRoleSelectors": [{"matchLabels": _label(name)}]}
    return _role(name, [], aggregated_by).with_fields({"aggregationRule": rule})


def _label(role: str) -> dict[str, str]:
    """Return the label of the roles that ``role`` aggregates."""
    return {f"{GROUP}/aggregate-to-{role}": "true"}


def _of_user(user: str, name: str, namespace: str, rule: Rule) -> list[KubeObject]:
    """Return a Role of one rule in a namespace, and its RoleBinding to a user."""
    identity = {"name": name, "namespace": namespace}
    return [
        _object("Role", identity, {"rules": [parsing.shown(rule)]}),
        _object("RoleBinding", identity, _bound(_reference("Role", name), _reference("User", user))),
    ]


def _binding(role: str, *groups: str, name: str = "") -> KubeObject:
    subjects = (_reference("Group", group) for group in groups)
    bound = _bound(_reference("ClusterRole", role), *subjects)
    return _object("ClusterRoleBinding", {"name": name or role}, bound)


def _bound(role: dict[str, str], *subjects: dict[str, str]) -> Json:
    return {"roleRef": role, "subjects": list(subjects)}


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _object(kind: str, identity: dict[str, str], content: Json) -> KubeObject:
    metadata = {**identity, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
    return KubeObject({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content})
