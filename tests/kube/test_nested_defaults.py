"""Defaults inside of specs, as Kubernetes sets them; clients that write back what they read change nothing."""

import pytest

from engine.kubeapi.admission.built_in_defaults import with_defaults
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest


def _filled(api_version: str, kind: str, **fields: object) -> KubeObject:
    return with_defaults(KubeObject({**manifest(api_version, kind, "one"), **fields}))


@pytest.mark.parametrize(
    ("field", "value", "filled"),
    [
        (
            "lifecycle",
            {"preStop": {"httpGet": {"port": 80}}, "postStart": {"httpGet": {"port": 80, "path": "/start"}}},
            {
                "preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}},
                "postStart": {"httpGet": {"port": 80, "path": "/start", "scheme": "HTTP"}},
            },
        ),
        (
            "env",
            [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}],
        ),
        (
            "readinessProbe",
            {"grpc": {"port": 5}, "timeoutSeconds": 3},
            {
                "grpc": {"port": 5, "service": ""},
                "timeoutSeconds": 3,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        ),
    ],
)
def test_container_has_defaults(field: str, value: object, filled: object) -> None:
    pod = _filled("v1", "Pod", spec={"containers": [{"name": "main", field: value}]})
    (container,) = pod.list_at("spec", "containers")
    assert object_at(container)[field] == filled


_NAMED: Json = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
_FILLED: Json = {"path": "name", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"]}


VOLUMES: list[tuple[Json, Json]] = [
    ({"downwardAPI": {"items": [_NAMED]}}, {"downwardAPI": {"items": [_FILLED], "defaultMode": 420}}),
    (
        {
            "projected": {
                "sources": [{"downwardAPI": {"items": [_NAMED]}}, {"serviceAccountToken": {"path": "t"}}]
            }
        },
        {
            "projected": {
                "sources": [
                    {"downwardAPI": {"items": [_FILLED]}},
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3_600}},
                ],
                "defaultMode": 420,
            }
        },
    ),
    (
        {"ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {"metadata": {}, "spec": {**_CLAIM, "volumeMode": "Filesystem"}}
            }
        },
    ),
    ({"iscsi": {"lun": 1}}, {"iscsi": {"lun": 1, "iscsiInterface": "default"}}),
    ({}, {"emptyDir": {}}),
]


@pytest.mark.parametrize(("volume", "filled"), VOLUMES)
def test_volume_has_defaults(volume: Json, filled: Json) -> None:
    pod = _filled("v1", "Pod", spec={"containers": [], "volumes": [{"name": "v", **volume}]})
    assert pod.list_at("spec", "volumes") == [{"name": "v", **filled}]


def test_ports_in_the_network_of_a_node_are_ports_of_the_node() -> None:
    spec: Json = {"hostNetwork": True, "containers": [{"name": "main", "ports": [{"containerPort": 80}]}]}
    port: Json = {"containerPort": 80, "protocol": "TCP"}
    template = _filled("v1", "PodTemplate", template={"spec": spec}).object_at("template")
    for value, ports in (
        (_filled("v1", "Pod", spec=spec).document, [{**port, "hostPort": 80}]),
        (_filled("v1", "Pod", spec={**spec, "hostNetwork": False}).document, [port]),
        (template, [port]),
    ):
        (container,) = list_at(value, "spec", "containers")
        assert object_at(container)["ports"] == ports


SERVICES: list[tuple[Json, Json]] = [
    (
        {"type": "LoadBalancer"},
        {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True},
    ),
    ({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
    ({"externalIPs": ["192.0.2.1"]}, {"externalTrafficPolicy": "Cluster", "type": "ClusterIP"}),
    ({"type": "ClusterIP"}, {}),
]


@pytest.mark.parametrize(("spec", "filled"), SERVICES)
def test_service_has_the_defaults_of_its_type(spec: Json, filled: Json) -> None:
    common: Json = {
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
    assert _filled("v1", "Service", spec=spec).at("spec") == {**spec, **common, **filled}


_HEADLESS: Json = {"clusterIP": "None"}


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        (_HEADLESS, "IPv4 IPv6", "RequireDualStack"),
        (_HEADLESS | {"ipFamilies": ["IPv6"]}, "IPv6 IPv4", "RequireDualStack"),
        (_HEADLESS | {"ipFamilyPolicy": "PreferDualStack"}, "IPv4 IPv6", "PreferDualStack"),
        (_HEADLESS | {"ipFamilyPolicy": "SingleStack"}, "IPv4", "SingleStack"),
        (_HEADLESS | {"selector": {"a": "b"}}, "IPv4", "SingleStack"),
        ({"ipFamilyPolicy": "PreferDualStack"}, "IPv4", "PreferDualStack"),
        ({"clusterIP": "fd00::1"}, "IPv6", "SingleStack"),
    ],
)
def test_service_has_the_ip_families_of_a_cluster_with_ipv4(spec: Json, families: str, policy: str) -> None:
    service = _filled("v1", "Service", spec=spec)
    assert (list_at(service.at("spec"), "ipFamilies"), service.at("spec", "ipFamilyPolicy")) == (
        families.split(),
        policy,
    )


def test_external_name_has_no_ip_families() -> None:
    service = _filled("v1", "Service", spec={"type": "ExternalName", "externalName": "a.b"})
    assert not service.object_at("spec").keys() & {"ipFamilies", "ipFamilyPolicy"}


def _policies(*policies: tuple[str, int]) -> list[Json]:
    return [{"type": name, "value": value, "periodSeconds": 15} for name, value in policies]


_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": _policies(("Pods", 4), ("Percent", 100)),
}
_DOWN: Json = {"selectPolicy": "Max", "policies": _policies(("Percent", 100))}


BEHAVIORS: list[tuple[Json, Json]] = [
    ({}, {"scaleUp": _UP, "scaleDown": _DOWN}),
    (
        {"scaleUp": {"stabilizationWindowSeconds": 3}, "scaleDown": {"selectPolicy": "Disabled"}},
        {
            "scaleUp": {**_UP, "stabilizationWindowSeconds": 3},
            "scaleDown": {**_DOWN, "selectPolicy": "Disabled"},
        },
    ),
]


@pytest.mark.parametrize(("behavior", "filled"), BEHAVIORS)
def test_behavior_of_an_autoscaler_has_rules_for_both_directions(behavior: Json, filled: Json) -> None:
    spec: Json = {"maxReplicas": 3, "behavior": behavior}
    value = _filled("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)
    assert value.at("spec", "behavior") == filled
    assert "behavior" not in _filled("autoscaling/v2", "HorizontalPodAutoscaler", spec={}).object_at("spec")


_RULE: Json = {"resources": ["deployments"]}
_MATCHED: Json = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_HOOK: Json = {"name": "a.b.c", "clientConfig": {"service": {"name": "s"}}, "rules": [_RULE]}
_FILLED_HOOK: Json = {
    **_MATCHED,
    "name": "a.b.c",
    "clientConfig": {"service": {"name": "s", "port": 443}},
    "rules": [{**_RULE, "scope": "*"}],
    "failurePolicy": "Fail",
    "timeoutSeconds": 10,
}


OTHERS: list[tuple[str, Json, Json]] = [
    (
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
        {"spec": {"matchConstraints": {"resourceRules": [_RULE]}}},
        {
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {**_MATCHED, "resourceRules": [{**_RULE, "scope": "*"}]},
            }
        },
    ),
    (
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
        {"spec": {"matchResources": {"excludeResourceRules": [_RULE], "matchPolicy": "Exact"}}},
        {
            "spec": {
                "matchResources": {
                    **_MATCHED,
                    "excludeResourceRules": [{**_RULE, "scope": "*"}],
                    "matchPolicy": "Exact",
                }
            }
        },
    ),
    (
        "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
        {"webhooks": [_HOOK]},
        {"webhooks": [_FILLED_HOOK]},
    ),
    (
        "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
        {"webhooks": [_HOOK]},
        {"webhooks": [{**_FILLED_HOOK, "reinvocationPolicy": "Never"}]},
    ),
    (
        "discovery.k8s.io/v1 EndpointSlice",
        {"endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]},
        {
            "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {}}],
            "ports": [{"port": 80, "name": "", "protocol": "TCP"}],
        },
    ),
    (
        "networking.k8s.io/v1 IngressClass",
        {"spec": {"parameters": {"kind": "A", "name": "a"}}},
        {"spec": {"parameters": {"kind": "A", "name": "a", "scope": "Cluster"}}},
    ),
]


@pytest.mark.parametrize(("kind", "fields", "filled"), OTHERS)
def test_other_kinds_have_defaults(kind: str, fields: Json, filled: Json) -> None:
    value = _filled(*kind.split(), **fields)
    assert {name: value.at(name) for name in fields} == filled


def test_pod_failure_policy_expects_true_conditions() -> None:
    rules: list[Json] = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    value = _filled("batch/v1", "Job", spec={"podFailurePolicy": {"rules": rules}})
    expected: list[Json] = [{"type": "DisruptionTarget", "status": "True"}]
    assert value.at("spec", "podFailurePolicy", "rules") == [{**rules[0], "onPodConditions": expected}]
