"""Invalid objects of the kinds that run no pods."""

from typing import Final

from tests.kube.oracle.stories.invalid.changes import ABSENT, story

_PORTS: Final = "spec.ports"
_PATHS: Final = "spec.rules.0.http.paths"
_BACKEND: Final = {"service": {"name": "web", "port": {"number": 80}}}
OTHERS: Final = {
    "services": story(
        "/api/v1/namespaces/{ns}/services",
        [
            ((_PORTS, []),),
            ((_PORTS, [{"port": 0}]),),
            ((_PORTS, [{"port": 70000}]),),
            ((_PORTS, [{"port": 80}, {"port": 81}]),),
            ((_PORTS, [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]),),
            ((_PORTS, [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]),),
            ((_PORTS, [{"port": 80, "name": "Upper"}]),),
            ((_PORTS, [{"port": 80, "protocol": "HTTP"}]),),
            ((_PORTS, [{"port": 80, "targetPort": "x_y"}]),),
            ((_PORTS, [{"port": 80, "targetPort": 0}]),),
            ((_PORTS, [{"port": 80, "nodePort": 30080}]),),
            (("spec.type", "Other"),),
            (("spec.type", "ExternalName"),),
            (("spec.type", "ExternalName"), ("spec.externalName", "a.example.com")),
            (("spec.type", "ExternalName"), ("spec.externalName", "a b")),
            (("spec.selector", {"a b": "c"}),),
            (("spec.sessionAffinity", "Other"),),
            (
                ("spec.sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 0}}),
                ("spec.sessionAffinity", "ClientIP"),
            ),
            (("spec.externalTrafficPolicy", "Local"),),
            (("spec.clusterIP", "x"),),
            (("spec.clusterIP", "None"),),
            (("spec.loadBalancerIP", "1.2.3.4"),),
            (("spec.externalIPs", ["x"]),),
            (("spec.ipFamilyPolicy", "Other"),),
        ],
        [{"spec": {"clusterIP": "10.96.200.200"}}, {"spec": {"ports": None}}, {"spec": {"type": "NodePort"}}],
    ),
    "ingresses": story(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        [
            (("spec", {}),),
            (("spec.rules.0.host", "UPPER.example.com"),),
            (("spec.rules.0.host", "*.example.com"),),
            (("spec.rules.0.host", "a.*.com"),),
            (("spec.rules.0.host", "1.2.3.4"),),
            (("spec.rules.0.http", {"paths": []}),),
            ((_PATHS, [{"path": "/", "backend": _BACKEND}]),),
            ((_PATHS, [{"path": "x", "pathType": "Prefix", "backend": _BACKEND}]),),
            ((_PATHS, [{"path": "/", "pathType": "Other", "backend": _BACKEND}]),),
            ((_PATHS, [{"path": "/a//b", "pathType": "Exact", "backend": _BACKEND}]),),
            ((_PATHS, [{"path": "/", "pathType": "Prefix", "backend": {}}]),),
            ((_PATHS, [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web"}}}]),),
            (
                (
                    _PATHS,
                    [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"service": {"name": "", "port": {"number": 0}}},
                        }
                    ],
                ),
            ),
            (
                (
                    _PATHS,
                    [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"service": {"name": "web", "port": {"number": 80, "name": "h"}}},
                        }
                    ],
                ),
            ),
            (
                (
                    _PATHS,
                    [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"serviceName": "web", "servicePort": 80},
                        }
                    ],
                ),
            ),
            (("spec.ingressClassName", "A B"),),
            (("spec.tls", [{"hosts": ["UP"], "secretName": "x"}]),),
            (("spec.defaultBackend", _BACKEND), ("spec.rules", ABSENT)),
        ],
        [],
    ),
    "secrets": story(
        "/api/v1/namespaces/{ns}/secrets",
        [
            (("data", {"a": "not base64!"}),),
            (("data", {"a b": "eA=="}),),
            (("stringData", {"": "x"}),),
            (("stringData", {"a": 5}),),
            (("type", "kubernetes.io/tls"),),
            (("type", "kubernetes.io/dockerconfigjson"),),
            (("type", "kubernetes.io/dockerconfigjson"), ("stringData", {".dockerconfigjson": "x"})),
            (("type", "kubernetes.io/basic-auth"),),
            (("type", "kubernetes.io/ssh-auth"),),
            (("type", "kubernetes.io/service-account-token"),),
        ],
        [{"type": "other"}, {"immutable": True}, {"data": {"a": "eHg="}}, {"immutable": False}],
    ),
    "config_maps": story(
        "/api/v1/namespaces/{ns}/configmaps",
        [
            (("data", {"a b": "x"}),),
            (("data", {"": "x"}),),
            (("data", {"..": "x"}),),
            (("data", {"a": "x"}), ("binaryData", {"a": "eA=="})),
            (("data", {"a": "x" * 1_048_577}),),
        ],
        [],
    ),
    "disruption_budgets": story(
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        [
            (("spec.maxUnavailable", 1),),
            (("spec.minAvailable", -1),),
            (("spec.minAvailable", "x"),),
            (("spec.minAvailable", "150%"),),
            (("spec.minAvailable", ABSENT), ("spec.maxUnavailable", "50%")),
            (("spec.selector.matchLabels", {"a b": "c"}),),
            (("spec.unhealthyPodEvictionPolicy", "Other"),),
        ],
        [{"spec": {"minAvailable": 2}}],
    ),
    "autoscalers": story(
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        [
            (("spec.maxReplicas", ABSENT),),
            (("spec.maxReplicas", 0),),
            (("spec.minReplicas", 5),),
            (("spec.minReplicas", 0),),
            (("spec.scaleTargetRef", {"kind": "", "name": ""}),),
            (("spec.scaleTargetRef.name", "a/b"),),
            (("spec.metrics", [{"type": "Resource"}]),),
            (("spec.metrics", [{"type": "Other"}]),),
            (
                (
                    "spec.metrics",
                    [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
                ),
            ),
            (
                (
                    "spec.metrics",
                    [
                        {
                            "type": "Resource",
                            "resource": {
                                "name": "cpu",
                                "target": {"type": "Utilization", "averageUtilization": 0},
                            },
                        }
                    ],
                ),
            ),
            (
                (
                    "spec.metrics",
                    [
                        {
                            "type": "Resource",
                            "resource": {
                                "name": "cpu",
                                "target": {"type": "AverageValue", "averageValue": "100m"},
                            },
                        }
                    ],
                ),
            ),
            (("spec.behavior", {"scaleDown": {"stabilizationWindowSeconds": 5000}}),),
        ],
        [{"spec": {"minReplicas": 2}}],
    ),
    "volume_claims": story(
        "/api/v1/namespaces/{ns}/persistentvolumeclaims",
        [
            (("spec.accessModes", []),),
            (("spec.accessModes", ["Other"]),),
            (("spec.resources", ABSENT),),
            (("spec.resources.requests.storage", "0"),),
            (("spec.resources.requests.storage", "x"),),
            (("spec.volumeMode", "Other"),),
            (("spec.storageClassName", "A B"),),
        ],
        [
            {"spec": {"accessModes": ["ReadOnlyMany"]}},
            {"spec": {"resources": {"requests": {"storage": "500Mi"}}}},
            {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
        ],
    ),
    "network_policies": story(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        [
            (("spec.policyTypes", ["Other"]),),
            (("spec.ingress", [{"from": [{}]}]),),
            (("spec.ingress", [{"from": [{"ipBlock": {"cidr": "x"}}]}]),),
            (("spec.ingress", [{"ports": [{"port": 0}]}]),),
            (("spec.ingress", [{"ports": [{"port": "http", "endPort": 5}]}]),),
            (("spec.podSelector", {"matchLabels": {"a b": "c"}}),),
        ],
        [],
    ),
    "priority_classes": story(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        [
            (("metadata.name", "system-x"),),
            (("value", 2_000_000_000),),
            (("preemptionPolicy", "Other"),),
        ],
        [{"value": 11}, {"description": "x"}],
    ),
    "service_accounts": story(
        "/api/v1/namespaces/{ns}/serviceaccounts",
        [(("metadata.name", "A"),)],
        [{"automountServiceAccountToken": False}, {"imagePullSecrets": [{"name": "a"}]}],
    ),
}
