"""Policies that Karmada's webhooks refuse because a part of them could have no effect, or another than intended."""

import pytest

from engine.karmada import rules
from engine.kubeapi.admission import schema_validation
from engine.kubeapi.schema.types import parsing
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

SELECTOR: Json = {"apiVersion": "apps/v1", "kind": "Deployment"}
ELSEWHERE: Json = {**SELECTOR, "namespace": "other"}


def _denial(kind: str, spec: Json) -> str:
    namespace = "" if kind.startswith("Cluster") else "shop"
    policy = manifest("policy.karmada.io/v1alpha1", kind, "one", namespace, spec=spec)
    return rules.denial(rules.rule_causes(KubeObject(policy), None))


@pytest.mark.parametrize("kind", ["PropagationPolicy", "OverridePolicy"])
def test_namespaced_policy_selects_only_in_its_namespace(kind: str) -> None:
    selectors: list[Json] = [{**SELECTOR, "namespace": "shop"}, SELECTOR, ELSEWHERE]
    assert _denial(kind, {"resourceSelectors": selectors}) == (
        'spec.resourceSelectors[2].namespace: Invalid value: "other": '
        "namespace of resource selector must be the same as the namespace of the policy"
    )
    assert _denial(kind, {"resourceSelectors": selectors[:2]}) == ""
    assert _denial(f"Cluster{kind}", {"resourceSelectors": selectors}) == ""


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "b"}}, ""),
        ({"affinity": {"groupByLabelKey": "a b"}}, 'affinity.groupByLabelKey: Invalid value: "a b"'),
        ({"antiAffinity": {}}, 'antiAffinity.groupByLabelKey: Invalid value: ""'),
        (
            {"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "a"}},
            "affinity and antiAffinity must not use the same groupByLabelKey",
        ),
    ],
)
def test_workload_affinity_names_different_label_keys(terms: Json, message: str) -> None:
    denial = _denial("PropagationPolicy", {"placement": {"workloadAffinity": terms}})
    assert message in denial
    assert bool(message) == bool(denial)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["spare", "cloud"], ""),
        ([None, None], ""),
        (["spare", "a b"], 'overflowAffinities[1].affinityName: Invalid value: "a b"'),
        (
            ["main"],
            'overflowAffinities[0].affinityName: Invalid value: "main": overflow affinity name must be',
        ),
        (["spare", "spare"], 'overflowAffinities[1].affinityName: Invalid value: "spare"'),
    ],
)
def test_names_of_overflow_affinities_are_unique(names: list[str | None], message: str) -> None:
    overflow = [{"clusterNames": ["m1"], **({"affinityName": name} if name else {})} for name in names]
    group = {"affinityName": "main", "overflowAffinities": overflow}
    spec: Json = {"placement": {"clusterAffinities": [group]}}
    known = parsing.named("policy.karmada.PropagationSpec")
    assert schema_validation.unknown_fields(spec, known) == []
    denial = _denial("PropagationPolicy", spec)
    assert message in denial
    assert bool(message) == bool(denial)


@pytest.mark.parametrize(
    ("overriders", "message"),
    [
        (
            {"fieldOverrider": [{"fieldPath": "/data/a"}]},
            "fieldOverrider[0]: Required value: FieldOverrider must have either JSON or YAML set",
        ),
        (
            {"fieldOverrider": [{"fieldPath": "/data/a", "json": [{"operator": "add", "subPath": "/b"}]}]},
            "json[0].value: Invalid value: null: value is required for add or replace operation",
        ),
        (
            {
                "fieldOverrider": [
                    {"fieldPath": "/data/a", "yaml": [{"operator": "remove", "subPath": "/b", "value": 1}]}
                ]
            },
            "yaml[0].value: Invalid value: 1: value is not allowed for remove operation",
        ),
        (
            {"annotationsOverrider": [{"operator": "add", "value": {"a b": "c"}}]},
            'annotationsOverrider[0].value: Invalid value: "a b"',
        ),
        ({"annotationsOverrider": [{"operator": "add", "value": {"Example.com/b": "c"}}]}, ""),
    ],
)
def test_overriders_without_a_valid_change_are_refused(overriders: Json, message: str) -> None:
    denial = _denial("OverridePolicy", {"overrideRules": [{"overriders": overriders}]})
    assert message in denial
    assert bool(message) == bool(denial)
