"""Validation of values against the schema of their kind, as for custom resources."""

import pytest

from engine.kubeapi.admission.schema_validation import value_faults
from engine.kubeapi.schema import resources
from events.json_values import Json


def wrong(group: str, plural: str, spec: Json) -> list[str]:
    resource = resources.control_plane().resource(group, "v1alpha1", plural)
    assert resource
    return [cause.text for cause in value_faults({"metadata": {}, "spec": spec}, resource.schema)]


def mistyped(path: str, actual: str, expected: str) -> str:
    return f'{path}: Invalid value: "{actual}": {path} in body must be of type {expected}: "{actual}"'


SCALED: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"scaleTargetRef": SCALED, "maxReplicas": 3}, []),
        ({"scaleTargetRef": SCALED}, ["spec.maxReplicas: Required value"]),
        ({"scaleTargetRef": {"name": "a"}, "maxReplicas": 1}, ["spec.scaleTargetRef.kind: Required value"]),
        (
            {"scaleTargetRef": SCALED, "maxReplicas": "3"},
            [mistyped("spec.maxReplicas", "string", "integer")],
        ),
        (
            {"scaleTargetRef": SCALED, "maxReplicas": True},
            [mistyped("spec.maxReplicas", "boolean", "integer")],
        ),
        (
            {"scaleTargetRef": 7, "maxReplicas": 1},
            [mistyped("spec.scaleTargetRef", "integer", "object")],
        ),
        (
            {"scaleTargetRef": SCALED, "maxReplicas": 1, "metrics": {}},
            [mistyped("spec.metrics", "object", "array")],
        ),
    ],
)
def test_types_and_required_fields_are_validated(spec: Json, words: list[str]) -> None:
    assert wrong("autoscaling.karmada.io", "federatedhpas", spec) == words


def test_enum_values_are_validated() -> None:
    match = {"conditionType": "Ready", "operator": "Like", "statusValues": ["True"]}
    spec: Json = {"taints": [{"key": "a", "effect": "Never"}], "addOnConditions": [match]}
    assert wrong("policy.karmada.io", "clustertaintpolicies", spec) == [
        'spec.addOnConditions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn"',
        'spec.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "NoExecute"',
    ]


def test_missing_spec_is_reported() -> None:
    resource = resources.control_plane().resource("policy.karmada.io", "v1alpha1", "federatedresourcequotas")
    assert resource
    assert [cause.text for cause in value_faults({"metadata": {}}, resource.schema)] == [
        "spec: Required value"
    ]


def test_bounds_are_validated() -> None:
    match = {"conditionType": "", "operator": "In", "statusValues": ["True"]}
    assert wrong("policy.karmada.io", "clustertaintpolicies", {"taints": [], "addOnConditions": [match]}) == [
        (
            'spec.addOnConditions[0].conditionType: Invalid value: "": '
            "spec.addOnConditions[0].conditionType in body should be at least 1 chars long"
        ),
        "spec.taints: Invalid value: 0: spec.taints in body should have at least 1 items",
    ]
