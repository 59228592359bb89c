"""Conversion of autoscalers between both versions, without loss."""

import json
from typing import cast

import pytest

from engine.kubeapi.admission import schema_validation
from engine.kubeapi.conversion import autoscalers, versions
from engine.kubeapi.schema.resources import control_plane
from events.json_values import Json
from events.kube_objects import KubeObject

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
}
METRICS: list[Json] = [
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "web",
            "target": {"type": "Utilization", "averageUtilization": 60},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "1k"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
            "metric": {"name": "requests"},
            "target": {"type": "Value", "value": "2k"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"queue": "jobs"}}},
            "target": {"type": "AverageValue", "averageValue": "30"},
        },
    },
    CPU,
]
MEMORY_SHARE: Json = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}},
}
CPU_AMOUNT: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}},
}
REQUESTS_PER_POD: Json = {
    "type": "Object",
    "object": {
        "describedObject": {"kind": "Ingress", "name": "main"},
        "metric": {"name": "requests"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}
CURRENT: list[Json] = [
    {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "900Mi"}}},
    {"type": "Pods", "pods": {"metric": {"name": "packets"}, "current": {"averageValue": "800"}}},
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Ingress", "name": "main"},
            "metric": {"name": "requests"},
            "current": {"value": "1k"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"averageValue": "12"}}},
    {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 41, "averageValue": "410m"}},
    },
]
_WHOLE: Json = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {
        "name": "web",
        "annotations": {"kept": "yes"},
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Apply",
                "apiVersion": "autoscaling/v2",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:maxReplicas": {}, "f:metrics": {}}},
            }
        ],
    },
    "spec": {
        "scaleTargetRef": REFERENCE,
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": METRICS,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "50m"}},
    },
    "status": {
        "currentReplicas": 3,
        "desiredReplicas": 4,
        "currentMetrics": CURRENT,
        "conditions": [{"type": "AbleToScale", "status": "True", "reason": "Ready", "message": ""}],
    },
}
WHOLE = KubeObject(_WHOLE)


def part(value: Json, *names: str) -> Json:
    for name in names:
        value = cast("Json", value[name])
    return value


def test_autoscaler_round_trips_through_v1() -> None:
    shown = autoscalers.to_served(WHOLE)
    assert shown.api_version == "autoscaling/v1"
    assert shown.object_at("spec") == {
        "scaleTargetRef": REFERENCE,
        "minReplicas": 2,
        "maxReplicas": 9,
        "targetCPUUtilizationPercentage": 70,
    }
    assert shown.object_at("status") == {
        "currentReplicas": 3,
        "desiredReplicas": 4,
        "currentCPUUtilizationPercentage": 41,
    }
    notes = shown.annotations
    assert json.loads(str(notes["autoscaling.alpha.kubernetes.io/metrics"]))[2] == {
        "type": "Pods",
        "pods": {
            "metricName": "packets",
            "selector": {"matchLabels": {"a": "b"}},
            "targetAverageValue": "1k",
        },
    }
    owned = shown.objects_at("metadata", "managedFields")[0]["fieldsV1"]
    assert owned == {"f:spec": {"f:maxReplicas": {}, "f:targetCPUUtilizationPercentage": {}}}
    assert autoscalers.to_stored(shown) == WHOLE


@pytest.mark.parametrize("metric", [*METRICS, MEMORY_SHARE, CPU_AMOUNT, REQUESTS_PER_POD])
def test_each_metric_round_trips(metric: Json) -> None:
    value = WHOLE.with_fields({"spec": {"scaleTargetRef": REFERENCE, "maxReplicas": 3, "metrics": [metric]}})
    assert autoscalers.to_stored(autoscalers.to_served(value)) == value


@pytest.mark.parametrize("metric", [MEMORY_SHARE, CPU_AMOUNT])
def test_only_the_share_of_the_cpu_is_a_field_of_v1(metric: Json) -> None:
    value = WHOLE.with_fields({"spec": {"maxReplicas": 3, "metrics": [metric]}})
    assert autoscalers.to_served(value).at("spec") == {"maxReplicas": 3}


def test_used_cpu_of_v1_is_a_current_metric() -> None:
    status: Json = {"currentReplicas": 1, "currentCPUUtilizationPercentage": 7}
    value = KubeObject({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "status": status})
    assert autoscalers.to_stored(value).at("status") == {
        "currentReplicas": 1,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}
        ],
    }


@pytest.mark.parametrize("metric", CURRENT)
def test_each_current_metric_round_trips(metric: Json) -> None:
    value = WHOLE.with_fields(
        {"status": {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": [metric]}}
    )
    assert autoscalers.to_stored(autoscalers.to_served(value)) == value


@pytest.mark.parametrize("value", [WHOLE, WHOLE.with_fields({"status": {"desiredReplicas": 1}})])
def test_converted_autoscaler_fits_the_v1_schema(value: KubeObject) -> None:
    resource = control_plane().resource("autoscaling", "v1", "horizontalpodautoscalers")
    assert resource is not None
    assert list(schema_validation.value_faults(autoscalers.to_served(value).document, resource.schema)) == []


def test_cpu_metric_of_v1_comes_last() -> None:
    first = WHOLE.with_fields({"spec": {**WHOLE.object_at("spec"), "metrics": [CPU, *METRICS[:-1]]}})
    assert autoscalers.to_stored(autoscalers.to_served(first)) == WHOLE


def test_behavior_is_read_as_kubernetes_writes_it() -> None:
    policy = {"Type": "Pods", "Value": 2, "PeriodSeconds": 15}
    rules = {"StabilizationWindowSeconds": 0, "SelectPolicy": None, "Policies": [policy], "Tolerance": "50m"}
    text = json.dumps({"ScaleUp": rules, "ScaleDown": None})
    notes = {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": text}}
    shown = WHOLE.with_fields({"apiVersion": "autoscaling/v1", "metadata": notes})
    assert autoscalers.to_stored(shown).at("spec", "behavior") == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}],
            "tolerance": "50m",
        }
    }


@pytest.mark.parametrize("name", ["metrics", "behavior", "current-metrics", "conditions"])
@pytest.mark.parametrize("text", ["", "{", "[" * 5_000, '"\\ud800'])
def test_annotations_that_are_no_json_are_refused(name: str, text: str) -> None:
    notes = {"annotations": {f"autoscaling.alpha.kubernetes.io/{name}": text}}
    with pytest.raises(autoscalers.ConversionError):
        autoscalers.to_stored(WHOLE.with_fields({"apiVersion": "autoscaling/v1", "metadata": notes}))


def test_nested_annotation_is_converted() -> None:
    notes = {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": '{"a":' * 900 + "1" + "}" * 900}}
    assert autoscalers.to_stored(WHOLE.with_fields({"metadata": notes})).kind


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("metrics", '[{"type":7}]', "metrics.type of type string"),
        (
            "metrics",
            '[{"type":"Resource","resource":{"name":"cpu","targetAverageUtilization":"x"}}]',
            "averageUtilization of type int32",
        ),
        ("behavior", '{"scaleUp":7}', "scaleUp of type v2.HPAScalingRules"),
    ],
)
def test_annotations_with_values_of_a_wrong_type_are_refused(name: str, text: str, words: str) -> None:
    first = control_plane().of_kind("autoscaling/v1", "HorizontalPodAutoscaler")
    assert first
    notes = {"annotations": {f"autoscaling.alpha.kubernetes.io/{name}": text}}
    value = WHOLE.with_fields({"apiVersion": "autoscaling/v1", "metadata": notes})
    with pytest.raises(versions.ConversionError, match=words):
        versions.to_stored(first, value)


@pytest.mark.parametrize("field", [7, None, [], {}, [7], [{}], [{"type": 7}], [{"type": "Pods", "pods": 7}]])
def test_arbitrary_values_are_converted(field: object) -> None:
    for name in ("metrics", "behavior"):
        assert autoscalers.to_served(WHOLE.with_fields({"spec": {name: field}})).kind
    for name in ("currentMetrics", "conditions"):
        assert autoscalers.to_served(WHOLE.with_fields({"status": {name: field}})).kind
    for name in ("metrics", "behavior", "current-metrics", "conditions"):
        notes = {"annotations": {f"autoscaling.alpha.kubernetes.io/{name}": json.dumps(field)}}
        assert autoscalers.to_stored(WHOLE.with_fields({"metadata": notes})).kind
    value = KubeObject({"metadata": field, "spec": field, "status": field})
    assert autoscalers.to_stored(value).api_version
    assert autoscalers.to_served(value).api_version
