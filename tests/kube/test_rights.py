"""RBAC: roles and bindings as objects, and the permissions that follow."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.rights import bootstrap_roles, parsing, rbac
from engine.kubeapi.rights.rbac import Act, Rule, User
from events.json_values import Json
from events.kube_objects import KubeObject

ALICE = User(name="alice", groups=("team", rbac.AUTHENTICATED))
ROBOT = User(name="system:serviceaccount:shop:robot", groups=rbac.service_account_groups("shop"))
MASTER = User(name="root", groups=(rbac.MASTERS,))


def role(name: str, *rules: Json, namespace: str = "", **more: object) -> KubeObject:
    metadata: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "Role" if namespace else "ClusterRole"
    head: Json = {"apiVersion": parsing.API_VERSION, "kind": kind, "metadata": metadata}
    return KubeObject({**head, "rules": list(rules), **more})


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Json:
    fields: Json = {"verbs": verbs.split(), "apiGroups": [groups], "resources": resources.split()}
    return {**fields, "resourceNames": names.split()} if names else fields


def binding(
    name: str, to: str, *subjects: Json, namespace: str = "", kind: str = "ClusterRole"
) -> KubeObject:
    metadata: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"apiGroup": parsing.GROUP, "kind": kind, "name": to}
    head: Json = {
        "apiVersion": parsing.API_VERSION,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
    }
    return KubeObject({**head, "roleRef": reference, "subjects": list(subjects)})


def user(name: str) -> Json:
    return {"kind": "User", "name": name}


def may(values: list[KubeObject], user: User, verb: str, resource: str, **more: str) -> bool:
    resource, _slash, part = resource.partition("/")
    return parsing.rights(values).may(user, Act(verb=verb, resource=resource, part=part, **more))


def test_nothing_is_permitted_without_a_binding() -> None:
    values = [role("reader", rule("get list", "pods"))]
    assert not may(values, ALICE, "get", "pods")
    assert may(values, MASTER, "get", "pods")


def test_cluster_role_binding_applies_everywhere() -> None:
    values = [role("reader", rule("get", "pods")), binding("b", "reader", user("alice"))]
    assert may(values, ALICE, "get", "pods", namespace="shop")
    assert may(values, ALICE, "get", "pods")
    assert not may(values, ALICE, "delete", "pods")
    assert not may(values, ALICE, "get", "pods/log")
    assert not may(values, ALICE, "get", "pods", group="other.io")
    assert not may(values, ROBOT, "get", "pods")


def test_role_binding_applies_in_its_namespace_only() -> None:
    values = [
        role("reader", rule("*", "*", "*")),
        binding("b", "reader", {"kind": "ServiceAccount", "name": "robot"}, namespace="shop"),
    ]
    assert may(values, ROBOT, "delete", "pods/exec", namespace="shop")
    assert not may(values, ROBOT, "get", "pods", namespace="other")
    assert not may(values, ROBOT, "get", "nodes")


def test_namespaced_role_is_no_cluster_role() -> None:
    values = [
        role("reader", rule("get", "pods"), namespace="shop"),
        binding("b", "reader", user("alice"), namespace="shop", kind="Role"),
        binding("c", "reader", user("alice")),
    ]
    assert may(values, ALICE, "get", "pods", namespace="shop")
    assert not may(values, ALICE, "get", "pods", namespace="other")


def test_rules_apply_by_name_and_subresource() -> None:
    values = [
        role("one", rule("get", "configmaps", names="settings"), rule("update", "*/scale", groups="apps")),
        binding("b", "one", {"kind": "Group", "name": "team"}),
    ]
    assert may(values, ALICE, "get", "configmaps", name="settings")
    assert not may(values, ALICE, "get", "configmaps", name="others")
    assert not may(values, ALICE, "get", "configmaps")
    assert may(values, ALICE, "update", "deployments/scale", group="apps")
    assert not may(values, ALICE, "update", "deployments", group="apps")


def test_rules_apply_by_path() -> None:
    values = [
        role("paths", {"verbs": ["get"], "nonResourceURLs": ["/apis/*", "/version"]}),
        binding("b", "paths", user("alice")),
    ]
    known = parsing.rights(values)
    assert known.may(ALICE, Act(verb="get", path="/apis/apps/v1"))
    assert known.may(ALICE, Act(verb="get", path="/version"))
    assert not known.may(ALICE, Act(verb="get", path="/versions"))
    assert not known.may(ALICE, Act(verb="post", path="/version"))


def test_cluster_role_aggregates_by_labels() -> None:
    labels: Json = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    known = parsing.rights(
        [
            *bootstrap_roles.objects(),
            role("extra", rule("get", "foos", "example.io")).with_metadata(labels),
            role("own", rule("get", "bars", "example.io"), namespace="shop").with_metadata(labels),
            binding("b", "edit", user("alice"), namespace="shop"),
        ]
    )
    # edit aggregates view, which aggregates roles with its label.
    act = Act(verb="get", group="example.io", resource="foos", namespace="shop")
    assert known.may(ALICE, act)
    # A user who may write Roles of a namespace could otherwise extend the rights of others.
    assert not known.may(ALICE, Act(verb="get", group="example.io", resource="bars", namespace="shop"))
    assert known.may(ALICE, Act(verb="create", group="apps", resource="deployments", namespace="shop"))
    policies = Act(verb="create", group="policy.karmada.io", resource="propagationpolicies", namespace="shop")
    assert known.may(ALICE, policies)
    roles = Act(verb="create", group=parsing.GROUP, resource="roles", namespace="shop")
    assert not known.may(ALICE, roles)


def test_clients_without_credentials_read_one_config_map_only() -> None:
    known = parsing.rights(bootstrap_roles.objects())
    for name, namespace, allowed in (
        ("cluster-info", "kube-public", True),
        ("other", "kube-public", False),
        ("", "kube-public", False),
        ("cluster-info", "default", False),
    ):
        act = Act(verb="get", resource="configmaps", namespace=namespace, name=name)
        assert known.may(User(name=rbac.ANONYMOUS, groups=(rbac.UNAUTHENTICATED,)), act) == allowed


@pytest.mark.parametrize(
    ("act", "role_names"),
    [
        (Act(verb="get", resource="pods", part="log"), ("view", "edit", "admin")),
        (Act(verb="create", resource="pods", part="eviction"), ("edit", "admin")),
        (Act(verb="create", resource="serviceaccounts", part="token"), ("edit", "admin")),
        (Act(verb="impersonate", resource="serviceaccounts"), ("edit", "admin")),
        (Act(verb="get", resource="secrets"), ("edit", "admin")),
        (Act(verb="create", group=parsing.GROUP, resource="rolebindings"), ("admin",)),
        (Act(verb="get", group="work.karmada.io", resource="works"), ("view", "edit", "admin")),
        (Act(verb="patch", group="work.karmada.io", resource="resourcebindings"), ("edit", "admin")),
        (Act(verb="update", group="policy.karmada.io", resource="federatedresourcequotas"), ()),
    ],
)
def test_default_roles_of_a_namespace_include_each_other(act: Act, role_names: tuple[str, ...]) -> None:
    permitted: list[str] = []
    for name in ("view", "edit", "admin"):
        values = [*bootstrap_roles.objects(), binding("b", name, user("alice"), namespace="shop")]
        of_namespace = msgspec.structs.replace(act, namespace="shop")
        permitted += [name] if parsing.rights(values).may(ALICE, of_namespace) else []
    assert tuple(permitted) == role_names


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "silver"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["silver"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "else", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "else", "operator": "NotIn", "values": ["a"]}]}, True),
        (
            {
                "matchLabels": {"tier": "gold"},
                "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}],
            },
            False,
        ),
        ({}, True),
        # An invalid selector aggregates nothing.
        ({"matchExpressions": [{"key": "tier", "operator": "Near"}]}, False),
        ({"matchExpressions": [{"key": "else", "operator": "NotIn"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists", "values": ["gold"]}]}, False),
        ({"matchExpressions": [{"key": 7, "operator": "Exists"}]}, False),
        ({"matchExpressions": {}}, False),
        ({"matchLabels": {"tier": 7}}, False),
        (None, False),
        ("tier=gold", False),
    ],
)
def test_cluster_role_aggregates_by_expressions(selector: object, fits: bool) -> None:
    gold = role("gold", rule("get", "foos", "example.io"))
    known = parsing.rights(
        [
            gold.with_metadata({"labels": {"tier": "gold"}}),
            role("all").with_fields({"aggregationRule": {"clusterRoleSelectors": [selector]}}),
            binding("b", "all", user("alice")),
        ]
    )
    assert known.may(ALICE, Act(verb="get", group="example.io", resource="foos")) == fits


def test_editors_of_a_namespace_may_change_its_bindings_but_not_its_quota() -> None:
    values = [*bootstrap_roles.objects(), binding("b", "edit", user("alice"), namespace="shop")]
    quotas, policy = "federatedresourcequotas", "policy.karmada.io"
    assert may(values, ALICE, "patch", "resourcebindings", group="work.karmada.io", namespace="shop")
    assert may(values, ALICE, "get", quotas, group=policy, namespace="shop")
    assert not may(values, ALICE, "patch", quotas, group=policy, namespace="shop")


def test_editors_of_a_namespace_may_connect_to_its_pods_but_not_write_endpoints() -> None:
    values = [*bootstrap_roles.objects(), binding("b", "edit", user("alice"), namespace="shop")]
    for resource in ("pods/exec", "pods/portforward", "services/proxy"):
        assert may(values, ALICE, "create", resource, namespace="shop")
        assert may(values, ALICE, "get", resource, namespace="shop")
    assert may(values, ALICE, "get", "endpoints", namespace="shop")
    # An editor could send the traffic of a Service to pods of other namespaces.
    assert not may(values, ALICE, "update", "endpoints", namespace="shop")


def test_builtin_roles_permit_self_reviews_and_discovery_to_all() -> None:
    known = parsing.rights(bootstrap_roles.objects())
    review = Act(verb="create", group="authorization.k8s.io", resource="selfsubjectaccessreviews")
    assert known.may(ROBOT, review)
    assert known.may(ROBOT, Act(verb="get", path="/openapi/v3"))
    assert not known.may(ROBOT, Act(verb="list", resource="namespaces"))


def test_first_binding_by_name_is_the_reason_in_whatever_order_they_are_stored() -> None:
    first, second = (binding(name, "reader", user("alice"), namespace="shop") for name in ("a", "b"))
    act = Act(verb="get", resource="pods", namespace="shop")
    for bindings in ([first, second], [second, first]):
        grant = parsing.rights([role("reader", rule("get", "pods")), *bindings]).allows(ALICE, act)
        assert grant is not None
        assert grant.binding.name == "a"


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (
            binding("b", "reader", user("alice")),
            'ClusterRoleBinding "b" of ClusterRole "reader" to User "alice"',
        ),
        (
            binding("b", "reader", user("alice"), namespace="shop"),
            'RoleBinding "b/shop" of ClusterRole "reader" to User "alice"',
        ),
        (
            binding("b", "own", {"kind": "Group", "name": "team"}, namespace="shop", kind="Role"),
            'RoleBinding "b/shop" of Role "own" to Group "team"',
        ),
        (
            binding("b", "reader", {"kind": "ServiceAccount", "name": "robot", "namespace": "shop"}),
            'ClusterRoleBinding "b" of ClusterRole "reader" to ServiceAccount "robot/shop"',
        ),
    ],
)
def test_reason_names_binding_role_and_subject(bound: KubeObject, reason: str) -> None:
    roles = [role("reader", rule("get", "pods")), role("own", rule("get", "pods"), namespace="shop")]
    known, act = parsing.rights([*roles, bound]), Act(verb="get", resource="pods", namespace="shop")
    grants = [grant for user in (ALICE, ROBOT) if (grant := known.allows(user, act)) is not None]
    assert [grant.reason for grant in grants] == [f"RBAC: allowed by {reason}"]


@pytest.mark.parametrize("kind", ["user", "", "Machine", None])
def test_subject_of_an_unknown_kind_is_nobody(kind: object) -> None:
    values = [role("reader", rule("get", "pods")), binding("b", "reader", {"kind": kind, "name": "alice"})]
    assert not may(values, ALICE, "get", "pods")


def test_permissions_beyond_the_own_ones_cannot_be_granted() -> None:
    values = [
        role("mine", rule("get list", "pods services"), rule("get", "secrets", names="a")),
        binding("b", "mine", user("alice"), namespace="shop"),
    ]
    known = parsing.rights(values)
    fine = parsing.rules(KubeObject({"rules": [rule("get", "pods"), rule("get", "secrets", names="a")]}))
    assert known.missing_rules(ALICE, fine, "shop") == []
    assert known.missing_rules(ALICE, fine, "other") != []
    wild = parsing.rules(KubeObject({"rules": [rule("*", "pods"), rule("get", "secrets")]}))
    assert known.missing_rules(ALICE, wild, "shop") == [
        Rule(verbs=("*",), groups=("",), resources=("pods",)),
        Rule(verbs=("get",), groups=("",), resources=("secrets",)),
    ]
    assert known.missing_rules(MASTER, wild, "shop") == []


def path_rule(*paths: str) -> Json:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


@pytest.mark.parametrize(
    ("requested", "is_owned"),
    [
        (path_rule("/apis/apps"), True),
        (path_rule("/version"), True),
        (path_rule("/metrics"), False),
        (rule("update", "deployments/scale", "apps"), True),
        (rule("update", "deployments/status", "apps"), False),
        (rule("update", "deployments", "apps"), False),
        (rule("update", "deployments/scale", "example.io"), False),
        (rule("get", "secrets", names="a"), True),
        (rule("get", "secrets", names="a b"), False),
    ],
)
def test_only_owned_parts_of_rules_may_be_granted(requested: Json, *, is_owned: bool) -> None:
    own = [
        path_rule("/apis/*", "/version"),
        rule("update", "*/scale", "apps"),
        rule("get", "secrets", names="a"),
    ]
    known = parsing.rights([role("mine", *own), binding("b", "mine", user("alice"))])
    rules = parsing.rules(KubeObject({"rules": [requested]}))
    assert (known.missing_rules(ALICE, rules, "") == []) == is_owned


_DAMAGED: list[Json] = [
    {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": "all"},
    {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [{"verbs": "*", "resources": "*"}]},
    {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [None, 7, []]},
    {"kind": "ClusterRole", "metadata": None},
]


@pytest.mark.parametrize("damaged", _DAMAGED)
def test_malformed_role_permits_nothing(damaged: Json) -> None:
    values = [KubeObject(damaged), binding("b", "reader", user("alice"))]
    assert not may(values, ALICE, "get", "pods")


_WORDS = st.sampled_from(["*", "get", "list", "pods", "pods/log", "*/log", "apps", ""])
_RULES = st.builds(
    Rule,
    verbs=st.lists(_WORDS, max_size=3).map(tuple),
    groups=st.lists(_WORDS, max_size=2).map(tuple),
    resources=st.lists(_WORDS, max_size=3).map(tuple),
    names=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
)
_ACTS = st.builds(
    Act,
    verb=st.sampled_from(["get", "list"]),
    group=st.sampled_from(["", "apps"]),
    resource=st.sampled_from(["pods", "nodes"]),
    part=st.sampled_from(["", "log"]),
    name=st.sampled_from(["", "a", "b"]),
)


@given(own=st.lists(_RULES, max_size=3), requested=st.lists(_RULES, max_size=3), act=_ACTS)
def test_grantable_rules_permit_nothing_new(own: list[Rule], requested: list[Rule], act: Act) -> None:
    role = rbac.Role(name="own", rules=tuple(own))
    bound = rbac.Binding(
        name="b", role="own", of_cluster=True, subjects=(rbac.Subject(kind="User", name="alice"),)
    )
    known = rbac.Rights([role], [bound])
    if not known.missing_rules(ALICE, requested, "") and any(rule.allows(act) for rule in requested):
        assert known.may(ALICE, act)
