"""Kinds that the control plane only stores for other controllers: create, validate, label, watch and delete."""

import json
from pathlib import Path
from typing import Final, cast

import pytest

from engine.karmada import unsupported
from tests.builders.manifests import manifest
from tests.kubectl.commands import Kubectl

README: Final = Path(__file__).parents[2] / "README.md"
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_SELECTORS = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
_RULES = [
    {
        "targetCluster": {"clusterNames": ["member1"]},
        "overriders": {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 1}]},
    }
]
POLICY = "policy.karmada.io/v1alpha1"
AUTOSCALING = "autoscaling.karmada.io/v1alpha1"
KINDS: list[tuple[str, str, str, dict[str, object]]] = [
    (POLICY, "OverridePolicy", "op", {"resourceSelectors": _SELECTORS, "overrideRules": _RULES}),
    (POLICY, "ClusterOverridePolicy", "cop", {"resourceSelectors": _SELECTORS, "overrideRules": _RULES}),
    (POLICY, "ClusterTaintPolicy", "clustertaintpolicies", {"taints": [{"key": "a", "effect": "NoExecute"}]}),
    (POLICY, "FederatedResourceQuota", "federatedresourcequotas", {"overall": {"cpu": "8"}}),
    (
        "config.karmada.io/v1alpha1",
        "ResourceInterpreterCustomization",
        "ric",
        {
            "target": {"apiVersion": "example.io/v1", "kind": "Gauge"},
            "customizations": {"replicaResource": {"luaScript": "function GetReplicas(obj) return 1 end"}},
        },
    ),
    (AUTOSCALING, "FederatedHPA", "fhpa", {"scaleTargetRef": _TARGET, "maxReplicas": 9}),
    (
        AUTOSCALING,
        "CronFederatedHPA",
        "cronfhpa",
        {
            "scaleTargetRef": _TARGET,
            "rules": [{"name": "night", "schedule": "0 1 * * *", "targetReplicas": 1}],
        },
    ),
    (
        "networking.karmada.io/v1alpha1",
        "MultiClusterService",
        "mcs",
        {"types": ["CrossCluster"], "providerClusters": [{"name": "member1"}]},
    ),
    ("remedy.karmada.io/v1alpha1", "Remedy", "remedies", {"actions": ["TrafficControl"]}),
    (
        "search.karmada.io/v1alpha1",
        "ResourceRegistry",
        "resourceregistries",
        {"targetCluster": {}, "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}]},
    ),
]


def _manifest(api_version: str, kind: str, name: str, spec: dict[str, object]) -> str:
    return json.dumps(manifest(api_version, kind, name, spec=spec))


@pytest.mark.parametrize(("api_version", "kind", "word", "spec"), KINDS, ids=[case[1] for case in KINDS])
def test_configuration_object_is_stored_and_validated(
    kubectl: Kubectl, api_version: str, kind: str, word: str, spec: dict[str, object]
) -> None:
    name = f"kept-{kind.lower()}"
    named = f"{kind.lower()}.{api_version.partition('/')[0]}/{name}"
    valid = _manifest(api_version, kind, name, spec)
    assert kubectl("apply", "-f", "-", stdin=valid) == f"{named} created\n"
    shown = kubectl.json(word, name)
    assert (shown["apiVersion"], shown["kind"]) == (api_version, kind)
    assert kubectl("label", word, name, "a=b") == f"{named} labeled\n"
    assert kubectl("get", word, "-l", "a=b", "-o", "name") == f"{named}\n"
    assert kubectl("get", word, name).startswith("NAME")
    assert "FIELD" in kubectl("explain", f"{word}.spec") or "FIELDS" in kubectl("explain", f"{word}.spec")
    wrong = _manifest(api_version, kind, name, {**spec, "colour": "red"})
    kubectl("apply", "-f", "-", stdin=wrong, code=1)
    assert 'unknown field "spec.colour"' in kubectl.errors
    first = next(iter(spec))
    kubectl("apply", "-f", "-", stdin=_manifest(api_version, kind, f"{name}-2", {**spec, first: 7}), code=1)
    assert f"spec.{first}" in kubectl.errors
    assert "must be of type" in kubectl.errors
    assert kubectl("delete", word, name).startswith(f'{named.partition("/")[0]} "{name}" deleted')
    kubectl("get", word, name, code=1)


def test_write_without_effect_is_answered_with_a_warning(kubectl: Kubectl) -> None:
    for api_version, kind, word, spec in KINDS:
        name = f"idle-{kind.lower()}"
        kubectl("apply", "-f", "-", stdin=_manifest(api_version, kind, name, spec))
        is_warned = f"{kind} is stored without effect: " in kubectl.errors
        has_effect = (api_version, kind) not in unsupported.KINDS
        assert is_warned != has_effect, kubectl.errors
        kubectl("label", word, name, "a=b")
        assert ("without effect" in kubectl.errors) == is_warned
        kubectl("delete", word, name)
        assert "without effect" not in kubectl.errors


def test_policy_of_another_scheduler_is_stored_with_a_warning(kubectl: Kubectl) -> None:
    for scheduler, is_warned in (("volcano", True), ("default-scheduler", False), ("reballast", False)):
        policy: dict[str, object] = {"resourceSelectors": _SELECTORS, "schedulerName": scheduler}
        policy_text = _manifest(POLICY, "PropagationPolicy", f"by-{scheduler}", policy)
        kubectl("apply", "-f", "-", stdin=policy_text)
        assert (f"names the scheduler {scheduler};" in kubectl.errors) == is_warned


@pytest.mark.parametrize(
    ("kind", "condition"), [("FederatedHPA", "ScalingActive"), ("MultiClusterService", "ServiceApplied")]
)
def test_kind_without_a_controller_has_a_condition(kubectl: Kubectl, kind: str, condition: str) -> None:
    ((api_version, _kind, word, spec),) = [case for case in KINDS if case[1] == kind]
    kubectl("apply", "-f", "-", stdin=_manifest(api_version, kind, "conditional", spec))
    kubectl("wait", f"--for=condition={condition}=False", word, "conditional", "--timeout=60s")


def test_readme_names_everything_without_effect() -> None:
    table = README.read_text().partition("| without effect |")[2]
    assert all(kind in table for _group, kind in unsupported.KINDS)


def test_admission_denies_what_the_reference_denies(kubectl: Kubectl) -> None:
    assigned = [{"clusterName": "member1", "hard": {"cpu": "2"}}]
    quota: dict[str, object] = {"overall": {"cpu": "1"}, "staticAssignments": assigned}
    kubectl("create", "-f", "-", stdin=_manifest(POLICY, "FederatedResourceQuota", "much", quota), code=1)
    assert "overall is less than assignments" in kubectl.errors
    both: dict[str, object] = {
        "resourceSelectors": _SELECTORS,
        "overrideRules": _RULES,
        "targetCluster": {"clusterNames": ["a"]},
    }
    kubectl("create", "-f", "-", stdin=_manifest(POLICY, "OverridePolicy", "both", both), code=1)
    assert "overrideRules and targetCluster can't co-exist" in kubectl.errors
    rule = {"overriders": {"plaintext": [{"path": "/a", "operator": "paint"}]}}
    painted: dict[str, object] = {"resourceSelectors": _SELECTORS, "overrideRules": [rule]}
    kubectl("create", "-f", "-", stdin=_manifest(POLICY, "OverridePolicy", "painted", painted), code=1)
    assert "spec.overrideRules[0].overriders.plaintext[0].operator: Unsupported value" in kubectl.errors


def test_selector_without_a_namespace_defaults_to_the_namespace_of_its_policy(kubectl: Kubectl) -> None:
    spec: dict[str, object] = {"resourceSelectors": _SELECTORS, "overrideRules": _RULES}
    kubectl("apply", "-f", "-", stdin=_manifest(POLICY, "OverridePolicy", "here", spec))
    path = "jsonpath={.spec.resourceSelectors[0].namespace}"
    assert kubectl("get", "op", "here", "-o", path) == kubectl.namespace


def test_quota_status_is_writable_as_subresource(kubectl: Kubectl) -> None:
    spec: dict[str, object] = {"overall": {"cpu": "8"}}
    kubectl("apply", "-f", "-", stdin=_manifest(POLICY, "FederatedResourceQuota", "room", spec))
    patch = '{"status":{"overall":{"cpu":"8"},"overallUsed":{"cpu":"2"}}}'
    kubectl("patch", "federatedresourcequota", "room", "--subresource=status", "--type=merge", "-p", patch)
    used = "jsonpath={.status.overallUsed.cpu}"
    assert kubectl("get", "federatedresourcequota", "room", "-o", used) == "2"


def test_clusters_show_the_actions_of_remedies_that_their_conditions_call_for(kubectl: Kubectl) -> None:
    actions = ("get", "cluster", "member2", "-o", "jsonpath={.status.remedyActions}")
    match = {"conditionType": "DnsReady", "operator": "Equal", "conditionStatus": "False"}
    spec: dict[str, object] = {
        "clusterAffinity": {"clusterNames": ["member2"]},
        "decisionMatches": [{"clusterConditionMatch": match}],
        "actions": ["TrafficControl"],
    }
    before = cast("dict[str, list[object]]", kubectl.json("cluster", "member2")["status"])["conditions"]

    def report(*added: object) -> None:
        status = json.dumps({"status": {"conditions": [*before, *added]}})
        kubectl("patch", "cluster", "member2", "--subresource=status", "--type=merge", "-p", status)

    kubectl("apply", "-f", "-", stdin=_manifest("remedy.karmada.io/v1alpha1", "Remedy", "dns", spec))
    try:
        assert kubectl(*actions) == ""
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Probed", "message": ""}
        report({"type": "DnsReady", "status": "False", **since})
        assert kubectl(*actions) == '["TrafficControl"]'
        listed = kubectl("get", "clusters", "-o", "jsonpath={.items[*].status.remedyActions}")
        assert listed == '["TrafficControl"]'
        report({"type": "DnsReady", "status": "True", **since})
        assert kubectl(*actions) == ""
        report({"type": "DnsReady", "status": "False", **since})
    finally:
        kubectl("delete", "remedy", "dns")
    assert kubectl(*actions) == ""
    report()
