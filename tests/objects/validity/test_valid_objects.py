"""The documents' objects pass; unknown fields and nulls do too."""

import msgspec
import pytest

from engine.objects import placements
from events.validation import manifests
from tests.builders.manifests import manifest
from tests.objects.validity.examples import (
    DEPLOYMENT,
    INTERPRETER,
    POLICY,
    REBALANCER,
    TAINT_POLICY,
    changed,
    placed,
    refusal,
    toleration,
)

LEGAL_PLACEMENTS: list[dict[str, object]] = [
    {},
    {"clusterAffinity": {"clusterNames": ["member1", "member2"]}},
    {"clusterAffinity": {"exclude": ["member1"]}},
    {"clusterAffinity": {"labelSelector": {"matchLabels": {"location": "us"}}}},
    {
        "clusterAffinity": {
            "labelSelector": {"matchExpressions": [{"key": "location", "operator": "In", "values": ["us"]}]},
            "fieldSelector": {
                "matchExpressions": [
                    {"key": "provider", "operator": "In", "values": ["huaweicloud"]},
                    {"key": "region", "operator": "NotIn", "values": ["cn-south-1"]},
                ]
            },
        }
    },
    {
        "clusterAffinities": [
            {"affinityName": "primary-clusters", "clusterNames": ["member1"]},
            {"affinityName": "backup-clusters", "clusterNames": ["member1", "member2"]},
        ]
    },
    {"clusterTolerations": [{"key": "dedicated", "value": "special-user", "effect": "NoSchedule"}]},
    {
        "clusterTolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
        ]
    },
    {"clusterTolerations": [{"operator": "Exists"}]},
    {
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        "spreadConstraints": [
            {"spreadByField": "region", "maxGroups": 2, "minGroups": 2},
            {"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1},
        ],
    },
    {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {
                "staticWeightList": [{"targetCluster": {"clusterNames": ["member1"]}, "weight": 1}]
            },
        }
    },
    {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
    },
]


@pytest.mark.parametrize("placement", LEGAL_PLACEMENTS)
def test_placements_of_the_guides_are_valid_and_decoded(placement: dict[str, object]) -> None:
    assert refusal(placed(placement)) == ""
    assert msgspec.convert(placement, placements.Placement) is not None


@pytest.mark.parametrize("value", [POLICY, REBALANCER, DEPLOYMENT, INTERPRETER, TAINT_POLICY])
def test_whole_objects_are_valid(value: dict[str, object]) -> None:
    assert refusal(value) == ""


def test_negative_ttl_of_a_rebalancer_is_valid_as_in_karmada() -> None:
    assert refusal(changed(REBALANCER, "spec.ttlSecondsAfterFinished", -1)) == ""


def test_role_name_may_contain_a_colon() -> None:
    role: dict[str, object] = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node")
    assert refusal(role) == ""


def test_unknown_fields_are_valid() -> None:
    value = changed(POLICY, "spec.placement", {"clusterAffinity": {"clusterName": ["member1"]}, "extra": 1})

    assert refusal(value) == ""


def test_field_in_another_case_is_accepted_with_a_note_and_nulls_are_dropped() -> None:
    written = {"key": "dedicated", "value": "special-user", "Effect": "NoSchedule"}
    value = placed({"clusterTolerations": [written], "spreadConstraints": None})
    notes: list[str] = []

    meant = manifests.canonical_object(value, notes)

    assert (
        meant["spec"]
        == placed(toleration(key="dedicated", value="special-user", effect="NoSchedule"))["spec"]
    )
    assert notes == ['field "spec.placement.clusterTolerations[0].Effect" was read as "effect"']
