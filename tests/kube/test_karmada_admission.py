"""Defaults and admission rules of the Karmada kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import marks
from engine.karmada import defaults, rules
from engine.karmada.default_tolerations import NOT_READY, UNREACHABLE, TolerationSeconds
from engine.kubeapi.errors.status_objects import StatusError
from engine.writing.edits import objects
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from tests import lines_run
from tests.builders.manifests import manifest

NOW_MS = 1_767_225_600_000
SELECTOR: Json = {"apiVersion": "apps/v1", "kind": "Deployment"}


def _policy(kind: str = "PropagationPolicy", **spec: object) -> Json:
    metadata: Json = {"name": "one"} if kind.startswith("Cluster") else {"name": "one", "namespace": "shop"}
    fields: Json = {"resourceSelectors": [SELECTOR], **spec}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": fields}


def _cluster(name: str = "member1", **spec: object) -> Json:
    fields: Json = {"syncMode": "Push", **spec}
    return manifest("cluster.karmada.io/v1alpha1", "Cluster", name, spec=fields)


def _filled(value: Json) -> Json:
    return defaults.with_defaults(KubeObject(value), NOW_MS).object_at("spec")


def _words(value: Json, old: Json | None = None) -> str:
    return rules.denial(rules.rule_causes(KubeObject(value), None if old is None else KubeObject(old)))


def test_policy_gets_defaults() -> None:
    assert _filled(_policy()) == {
        "resourceSelectors": [{**SELECTOR, "namespace": "shop"}],
        "conflictResolution": "Abort",
        "placement": {},
        "preemption": "Never",
        "priority": 0,
        "schedulerName": "default-scheduler",
    }
    assert _filled(_policy("ClusterPropagationPolicy"))["resourceSelectors"] == [SELECTOR]


def test_only_namespaced_override_policies_get_empty_overriders() -> None:
    assert _filled(_policy("OverridePolicy", overrideRules=[]))["overriders"] == {}
    assert "overriders" not in _filled(_policy("ClusterOverridePolicy", overrideRules=[]))


def test_placement_gets_defaults() -> None:
    filled = _filled(
        _policy(
            placement={"spreadConstraints": [{"maxGroups": 2}], "replicaScheduling": {"weightPreference": {}}}
        )
    )
    assert filled["placement"] == {
        "spreadConstraints": [{"maxGroups": 2, "spreadByField": "cluster", "minGroups": 1}],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {},
        },
    }


def _tolerations(value: Json, seconds: TolerationSeconds) -> object:
    return defaults.with_defaults(KubeObject(value), NOW_MS, seconds).at(
        "spec", "placement", "clusterTolerations"
    )


def test_policy_gets_default_tolerations_of_failing_clusters() -> None:
    both = TolerationSeconds(not_ready=300, unreachable=0)
    not_ready = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    unreachable = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    other = {"key": "gpu", "operator": "Exists"}
    for kind in ("PropagationPolicy", "ClusterPropagationPolicy"):
        assert _tolerations(_policy(kind), TolerationSeconds()) is None
        assert _tolerations(_policy(kind), both) == [not_ready, unreachable]
        assert _tolerations(_policy(kind), TolerationSeconds(unreachable=0)) == [unreachable]
        policy = _policy(kind, placement={"clusterTolerations": [other]})
        assert _tolerations(policy, both) == [other, not_ready, unreachable]


@pytest.mark.parametrize(
    "own",
    [
        {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"},
        {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 5},
        {"operator": "Exists"},
    ],
)
def test_existing_toleration_is_kept(own: Json) -> None:
    policy = _policy(placement={"clusterTolerations": [own]})
    assert _tolerations(policy, TolerationSeconds(not_ready=300)) == [own]
    elsewhere = _policy(placement={"clusterTolerations": [{**own, "key": "x", "effect": "NoSchedule"}]})
    assert _tolerations(elsewhere, TolerationSeconds(not_ready=300)) != [own]


@pytest.mark.parametrize("placement", ["nowhere", {"clusterTolerations": "all"}])
def test_malformed_placement_is_left_for_validation(placement: object) -> None:
    policy = KubeObject(_policy(placement=placement))
    assert defaults.with_defaults(policy, NOW_MS, TolerationSeconds(not_ready=300)).at("spec") == {
        **_filled(_policy()),
        "placement": placement,
    }


@pytest.mark.parametrize(("kind", "propagates"), [("ServiceImport", True), ("Service", False)])
def test_service_import_enables_dependency_distribution(kind: str, *, propagates: bool) -> None:
    selectors = [{"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": kind}]
    assert _filled(_policy(resourceSelectors=selectors)).get("propagateDeps", False) is propagates


def test_failover_has_its_defaults() -> None:
    filled = _filled(_policy(failover={"application": {"decisionConditions": {}}, "cluster": {}}))
    assert "propagateDeps" not in filled
    assert filled["failover"] == {
        "application": {
            "purgeMode": "Gracefully",
            "decisionConditions": {"tolerationSeconds": 300},
            "gracePeriodSeconds": 600,
        },
        "cluster": {"purgeMode": "Gracefully"},
    }


def test_no_execute_taint_gets_its_time() -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}]
    assert _filled(_cluster(taints=taints))["taints"] == [
        {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "b", "effect": "NoSchedule"},
    ]


EMPTY: Json = {}
BARE: Json = {"decisionConditions": EMPTY}
PLACEMENTS: list[Json] = [EMPTY, {"spreadConstraints": [EMPTY]}, {"replicaScheduling": EMPTY}]
FAILOVERS: list[Json] = [EMPTY, {"application": BARE}, {"cluster": EMPTY}]
SPECS: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"propagateDeps": st.just(value=True)},
    optional={
        "placement": st.sampled_from(PLACEMENTS),
        "failover": st.sampled_from(FAILOVERS),
        "priority": st.integers(0, 3),
    },
)


@given(SPECS, st.sampled_from(["PropagationPolicy", "ClusterPropagationPolicy"]))
def test_defaulting_is_idempotent_and_valid(spec: Json, kind: str) -> None:
    once = defaults.with_defaults(KubeObject(_policy(kind, **spec)), NOW_MS)
    assert defaults.with_defaults(once, NOW_MS + 60_000) == once
    assert objects.form_causes(once) == []
    assert rules.rule_causes(once, None) == []


FORMS: list[tuple[Json, str]] = [
    (_policy(resourceSelectors=[]), "spec.resourceSelectors: Required value: give at least 1"),
    (_policy(preemption="Often"), "spec.preemption: Invalid value"),
    (
        _policy(resourceSelectors=[{"kind": "Deployment"}]),
        "spec.resourceSelectors[0].apiVersion: Required value",
    ),
    (_cluster(syncMode=""), "spec.syncMode: Required value"),
    (_cluster("a" * 49), "metadata.name: Invalid value"),
    (_cluster("a.b"), "metadata.name: Invalid value"),
    (_cluster("Member1"), "metadata.name: Invalid value"),
    (_cluster(secretRef={"name": "x"}), "spec.secretRef.namespace: Required value"),
    (_cluster(proxyURL="ftp://x"), 'unsupported scheme "ftp"'),
    (_cluster(taints=[{"key": "a", "effect": "NoSchedule"}] * 2), "spec.taints[1]: Duplicate value"),
]


@pytest.mark.parametrize(("value", "words"), FORMS)
def test_malformed_fields_are_refused(value: Json, words: str) -> None:
    assert words in ", ".join(cause.text for cause in objects.form_causes(KubeObject(value)))


@pytest.mark.parametrize("proxy", ["", "http://proxy", "https://proxy", "socks5://proxy"])
def test_cluster_with_a_proxy_is_accepted(proxy: str) -> None:
    assert objects.form_causes(KubeObject(_cluster(proxyURL=proxy))) == []


AFFINITY: Json = {"clusterNames": ["member1"]}


def _field_overrides(**patches: object) -> Json:
    return {"overriders": {"fieldOverrider": [{"fieldPath": "/data/settings", **patches}]}}


def _quota(overall: str, assigned: str) -> Json:
    assignments = [{"clusterName": "m1", "hard": {"cpu": assigned}}]
    return {"overall": {"cpu": overall}, "staticAssignments": assignments}


OTHER_ASSIGNMENT: Json = {"clusterName": "a.b", "hard": {"cpu": "1"}}


def _federated_hpa(**spec: object) -> Json:
    return manifest("autoscaling.karmada.io/v1alpha1", "FederatedHPA", "one", "shop", spec=spec)


RULES: list[tuple[Json, str]] = [
    (
        _policy(
            placement={"clusterAffinity": AFFINITY, "clusterAffinities": [{"affinityName": "a", **AFFINITY}]}
        ),
        "spec.placement.clusterAffinities",
    ),
    (
        _policy(
            placement={"spreadConstraints": [{"spreadByField": "cluster"}, {"spreadByField": "cluster"}]}
        ),
        "multiple cluster spread constraints are not allowed",
    ),
    (_policy(placement={"spreadConstraints": [{"spreadByField": "region"}]}), "not by cluster"),
    (_policy(preemption="Always"), "spec.resourceSelectors[0].name"),
    (
        _policy(
            failover={
                "application": {"purgeMode": "Never", "gracePeriodSeconds": 5, "decisionConditions": {}}
            }
        ),
        "only takes effect when purgeMode is gracefully",
    ),
    (_policy(failover={"application": BARE}), "propagateDeps must be true"),
    (_policy(failover={"application": BARE}, propagateDeps=False), "propagateDeps must be true"),
    (
        _policy("OverridePolicy", overrideRules=[], targetCluster=AFFINITY),
        "overrideRules and targetCluster can't co-exist",
    ),
    (
        _policy("OverridePolicy", overrideRules=[], overriders={"plaintext": [EMPTY]}),
        "overrideRules and overriders can't co-exist",
    ),
    (
        _policy(
            "ClusterOverridePolicy",
            overrideRules=[{"overriders": {"imageOverrider": [{"predicate": {"path": "spec"}}]}}],
        ),
        "spec.overrideRules[0].overriders.imageOverrider[0].predicate.path",
    ),
    (
        _policy("ClusterTaintPolicy", taints=[{"key": "a", "effect": "NoSchedule"}] * 2),
        "taint(a:NoSchedule) already exist",
    ),
    (
        _policy(
            "FederatedResourceQuota",
            overall={"cpu": "1"},
            staticAssignments=[
                {"clusterName": "m1", "hard": {"cpu": "600m"}},
                {"clusterName": "m2", "hard": {"cpu": "600m", "pods": "1"}},
            ],
        ),
        "overall is less than assignments",
    ),
    (
        _policy(
            failover={"application": {"purgeMode": "Gracefully", "decisionConditions": {}}},
        ),
        "should not be empty when purgeMode is gracefully",
    ),
    (
        _policy("OverridePolicy", overrideRules=[_field_overrides(json=[EMPTY], yaml=[EMPTY])]),
        "FieldOverrider has both YAML and JSON set",
    ),
    (
        _policy("FederatedResourceQuota", overall={"foo": "1"}),
        'spec.overall[foo]: Invalid value: "foo": must be a standard resource for quota',
    ),
    (
        _policy(
            "FederatedResourceQuota",
            overall={"pods": "2"},
            staticAssignments=[{"clusterName": "m1", "hard": {"pods": "500m"}}],
        ),
        'spec.staticAssignments[0].hard[pods]: Invalid value: "500m": must be an integer',
    ),
    (
        _policy("FederatedResourceQuota", **_quota("1", "much")),
        'spec.overall[cpu]: Invalid value: "1": this amount or an assigned one is not a quantity',
    ),
    (
        _policy("FederatedResourceQuota", **_quota("much", "1")),
        'spec.overall[cpu]: Invalid value: "much": this amount or an assigned one is not a quantity',
    ),
    (
        _policy("FederatedResourceQuota", overall={"pods": "1"}, staticAssignments=[OTHER_ASSIGNMENT]),
        "spec.staticAssignments[0].hard[cpu]: Invalid value",
    ),
    (
        _policy("FederatedResourceQuota", overall={"cpu": "1"}, staticAssignments=[OTHER_ASSIGNMENT]),
        "spec.staticAssignments[0].clusterName: Invalid value",
    ),
    (_federated_hpa(minReplicas=3, maxReplicas=2), "spec.maxReplicas"),
]


@pytest.mark.parametrize(("value", "words"), RULES)
def test_violated_rules_are_refused(value: Json, words: str) -> None:
    assert words in _words(value)
    assert rules.webhook(str(value["kind"])).endswith(".karmada.io")


@pytest.mark.parametrize(
    "value",
    [
        _policy(failover={"application": {**BARE, "purgeMode": "Directly"}}, propagateDeps=True),
        _policy(placement={"spreadConstraints": [{"spreadByLabel": "zone"}, {"spreadByLabel": "rack"}]}),
        _policy("OverridePolicy", targetCluster=AFFINITY, overriders={"plaintext": [EMPTY]}),
        _policy("OverridePolicy", overrideRules=[_field_overrides(json=[{"subPath": "", "value": 1}])]),
        _policy(
            "OverridePolicy", overrideRules=[_field_overrides(yaml=[{"operator": "remove", "subPath": "/a"}])]
        ),
        _policy("FederatedResourceQuota", **_quota("1", "1000m")),
        _federated_hpa(minReplicas=2, maxReplicas=2),
        # A custom kind of another group may have the name of one of Karmada's.
        {
            **_policy("OverridePolicy", targetCluster=AFFINITY, overrideRules=[]),
            "apiVersion": "example.io/v1",
        },
    ],
)
def test_object_within_the_rules_is_accepted(value: Json) -> None:
    assert _words(value) == ""


@pytest.mark.parametrize(
    ("value", "refused_by"),
    [
        (_cluster(), 'clusters.cluster.karmada.io "member1" is forbidden: '),
        (_policy(), 'admission webhook "resourcedeletionprotection.karmada.io" denied the request: '),
    ],
)
def test_protected_object_cannot_be_deleted(value: Json, refused_by: str) -> None:
    label = "resourcetemplate.karmada.io/deletion-protected"
    rules.check_deletion(KubeObject(value).with_metadata({"labels": {label: "Never"}}))
    with pytest.raises(StatusError) as refused:
        rules.check_deletion(KubeObject(value).with_metadata({"labels": {label: "Always"}}))
    assert refused.value.message == (
        f"{refused_by}This resource is protected, please make sure to remove the label: {label}"
    )


def test_immutable_policy_fields_cannot_change() -> None:
    label = marks.POLICY_IDS["PropagationPolicy"]
    old = _policy(schedulerName="default-scheduler")
    old["metadata"] = {"name": "one", "namespace": "shop", "labels": {label: "7"}}
    assert not _words({**old}, old)
    other = {**old, "spec": {**object_at(old, "spec"), "schedulerName": "mine"}}
    assert _words(other, old) == "the schedulerName should not be updated"
    bare = {**old, "metadata": {"name": "one", "namespace": "shop"}}
    assert (
        _words(bare, old) == f"label {label} is immutable, it can only be set by the system during creation"
    )


@pytest.mark.parametrize(
    ("kind", "api_version", "field"),
    [("Deployment", "apps/v1", "spec.template.spec"), ("Ingress", "networking.k8s.io/v1", "spec.tls")],
)
def test_references_of_a_workload_are_limited(kind: str, api_version: str, field: str) -> None:
    def value(count: int) -> KubeObject:
        names = [f"s{index}" for index in range(count)]
        pod: Json = {"imagePullSecrets": [{"name": name} for name in names]}
        spec: Json = {"template": {"spec": pod}, "tls": [{"secretName": name} for name in names]}
        metadata: Json = {"name": "web", "namespace": "shop"}
        return KubeObject({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})

    assert objects.form_causes(value(1_000)) == []
    (cause,) = objects.form_causes(value(1_001))
    assert (cause.field, cause.reason) == (field, "FieldValueInvalid")
    assert cause.message.endswith("refers to 1001 objects, more than 1000")


def test_assignments_of_a_quota_are_checked_in_linear_time() -> None:
    def cost(size: int) -> int:
        names = [f"count/r{index}" for index in range(size)]
        hard = dict.fromkeys(names, "1")
        assignments = [{"clusterName": "a", "hard": {name: "1"}} for name in names]
        quota = manifest(
            "policy.karmada.io/v1alpha1",
            "FederatedResourceQuota",
            "one",
            spec={"overall": hard, "staticAssignments": assignments},
        )
        with lines_run.counted() as lines:
            assert _words(quota) == ""
        return lines.count

    assert cost(400) < 6 * cost(100)
