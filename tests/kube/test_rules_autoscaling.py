"""Validation of HorizontalPodAutoscalers: metrics and scaling behaviour."""

import pytest

from engine.kubeapi.admission.rules.autoscaling import autoscaler
from events.json_values import Json
from events.kube_objects import KubeObject

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def wrong(**spec: object) -> list[str]:
    value: Json = {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}}
    return [f"{cause.field}: {cause.message}" for cause in autoscaler(KubeObject(value), None)]


def of_cpu(**target: object) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


METRIC: Json = {"name": "queue", "selector": {"matchLabels": {"a": "b"}}}
SHARE = "spec.metrics[0].resource.target"


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (of_cpu(type="Utilization", averageUtilization=80), []),
        (of_cpu(type="AverageValue", averageValue="500m"), []),
        (
            {
                "type": "Pods",
                "pods": {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": 5}},
            },
            [],
        ),
        ({"type": "External", "external": {"metric": METRIC, "target": {"type": "Value", "value": "5"}}}, []),
        ({"type": "Resource"}, ["Required value: must populate information for the given metric source"]),
        (of_cpu(averageUtilization=80), ["Required value: must specify a metric target type"]),
        (of_cpu(type="Utilization", averageUtilization=0), ["Invalid value: 0: must be greater than 0"]),
        (of_cpu(type="AverageValue", averageValue="0"), ['Invalid value: "0": must be positive']),
        (
            of_cpu(type="Utilization", averageUtilization=1, averageValue="1"),
            ["Forbidden: may not set both a target raw value and a target utilization"],
        ),
        (
            {"type": "External", "external": {"metric": METRIC, "target": {"type": "Value"}}},
            ["Required value: must set either a target value for metric or a per-pod target"],
        ),
    ],
)
def test_metrics_are_validated(metric: Json, words: list[str]) -> None:
    assert [message.partition(": ")[2] for message in wrong(metrics=[metric])] == words


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            {
                "stabilizationWindowSeconds": 3600,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
            },
            [],
        ),
        ({"stabilizationWindowSeconds": -1}, ["Invalid value: -1: must be greater than or equal to 0"]),
        ({"stabilizationWindowSeconds": 3601}, ["Invalid value: 3601: must be less than or equal to 3600"]),
        ({"policies": []}, ["Required value: must specify at least one Policy"]),
        (
            {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]},
            [
                "Invalid value: 0: must be greater than zero",
                "Invalid value: 1801: must be less than or equal to 1800",
            ],
        ),
    ],
)
def test_behavior_is_validated(rules: Json, words: list[str]) -> None:
    assert [message.partition(": ")[2] for message in wrong(behavior={"scaleDown": rules})] == words


def test_scale_target_needs_an_api_group() -> None:
    assert wrong(scaleTargetRef={"kind": "Deployment", "name": "web"}) == [
        'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group'
    ]
    assert wrong(scaleTargetRef={"apiVersion": "v1", "kind": "ReplicationController", "name": "web"}) == []
