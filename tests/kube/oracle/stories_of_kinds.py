"""Invalid objects of built-in kinds, and forbidden changes."""

import copy
from typing import Final, cast

from tests.kube.oracle import objects
from tests.kube.oracle.objects import Json
from tests.kube.oracle.playing import MERGE, Ask, Story

_NONE: Final = object()
_POD: Final = "spec.template.spec"
_MAIN: Final = f"{_POD}.containers.0"

Change = tuple[str, object]


def changed(value: Json, *changes: Change) -> Json:
    """Return the object with other values at paths; ``_NONE`` removes one."""
    found = copy.deepcopy(value)
    for path, item in changes:
        *above, last = path.split(".")
        at = found
        for step in above:
            below = cast("list[Json]", at)[int(step)] if step.isdecimal() else at.setdefault(step, {})
            at = cast("Json", below)
        if item is _NONE:
            at.pop(last)
        else:
            at[last] = item
    return found


def story(path: str, wrong: list[tuple[Change, ...]], updates: list[Json]) -> Story:
    """Try each invalid object; then create a valid one, and try each update."""
    good = objects.KINDS[path]

    async def tell(ask: Ask, ns: str) -> None:
        at = path.format(ns=ns)
        for changes in wrong:
            await ask("POST", f"{at}?dryRun=All", changed(good, *changes))
        await ask("POST", at, good)
        name = cast("Json", good["metadata"])["name"]
        for patch in updates:
            await ask("PATCH", f"{at}/{name}", patch, MERGE)

    return tell


_PORTS: Final = "spec.ports"
_SELECTOR: Final = "spec.selector.matchLabels"
_WORKLOAD: Final[list[tuple[Change, ...]]] = [
    (("spec.selector", _NONE),),
    (("spec.selector", {}),),
    ((_SELECTOR, {"app": "two"}),),
    ((_SELECTOR, {"a b": "c"}),),
    (("spec.selector.matchExpressions", [{"key": "a", "operator": "Other"}]),),
    (("spec.selector.matchExpressions", [{"key": "a", "operator": "In"}]),),
    (("spec.template", _NONE),),
    (("spec.template.metadata.labels", _NONE),),
    ((f"{_POD}.containers", []),),
    ((f"{_POD}.containers", _NONE),),
    ((f"{_POD}.restartPolicy", "Never"),),
    ((f"{_POD}.restartPolicy", "Other"),),
]

WORKLOADS: Final = {
    "daemonsets": story(
        "/apis/apps/v1/namespaces/{ns}/daemonsets",
        [
            *_WORKLOAD,
            (("spec.updateStrategy", {"type": "Other"}),),
            (
                (
                    "spec.updateStrategy",
                    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}},
                ),
            ),
            (("spec.minReadySeconds", -1),),
        ],
        [{"spec": {"selector": {"matchLabels": {"app": "two"}}}}, {"spec": {"minReadySeconds": 3}}],
    ),
    "deployments": story(
        "/apis/apps/v1/namespaces/{ns}/deployments",
        [
            *_WORKLOAD,
            (("spec.replicas", -1),),
            (("spec.minReadySeconds", -1),),
            (("spec.revisionHistoryLimit", -1),),
            (("spec.progressDeadlineSeconds", 0),),
            (("spec.minReadySeconds", 700),),
            (("spec.strategy", {"type": "Other"}),),
            (("spec.strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),),
            (("spec.strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),),
            (("spec.strategy", {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "200%"}}),),
            (("spec.strategy", {"rollingUpdate": {"maxSurge": -1}}),),
            (("spec.replicas", -1), ("spec.minReadySeconds", -2), (f"{_MAIN}.name", "A")),
        ],
        [
            {"spec": {"selector": {"matchLabels": {"app": "two"}}}},
            {
                "spec": {
                    "selector": {"matchLabels": {"app": "two"}},
                    "template": {"metadata": {"labels": {"app": "two"}}},
                }
            },
            {"spec": {"replicas": -3}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
            {"spec": {"replicas": 0, "paused": True}},
            {"metadata": {"labels": {"bad key": "x"}}},
        ],
    ),
    "pods_of_deployments": story(
        "/apis/apps/v1/namespaces/{ns}/deployments",
        [
            ((f"{_MAIN}.name", _NONE),),
            ((f"{_MAIN}.name", "Upper"),),
            ((f"{_MAIN}.image", _NONE),),
            ((f"{_MAIN}.image", " x"),),
            ((f"{_MAIN}.imagePullPolicy", "Other"),),
            ((f"{_MAIN}.ports", [{"containerPort": 0}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 70000}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 80, "name": "UPPER"}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 80, "name": "a-very-long-port-name"}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 80, "protocol": "HTTP"}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),),
            ((f"{_MAIN}.ports", [{"containerPort": 80}, {"containerPort": 80}]),),
            ((f"{_MAIN}.env", [{"name": ""}]),),
            ((f"{_MAIN}.env", [{"name": "a=b", "value": "c"}]),),
            ((f"{_MAIN}.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),),
            (
                (
                    f"{_MAIN}.env",
                    [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                ),
            ),
            ((f"{_MAIN}.env", [{"name": "A", "valueFrom": {}}]),),
            ((f"{_MAIN}.env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.other"}}}]),),
            ((f"{_MAIN}.env", [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": ""}}}]),),
            ((f"{_MAIN}.env", [{"name": "A", "value": 5}]),),
            ((f"{_MAIN}.resources", {"requests": {"cpu": "x"}}),),
            ((f"{_MAIN}.resources", {"requests": {"cpu": "-1"}}),),
            ((f"{_MAIN}.resources", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),),
            ((f"{_MAIN}.resources", {"requests": {"other": "1"}}),),
            (
                (
                    f"{_MAIN}.resources",
                    {"requests": {"cpu": "1.5", "memory": "1.5Gi"}, "limits": {"memory": "2048Mi"}},
                ),
            ),
            ((f"{_MAIN}.resources", {"limits": {"memory": "100m"}}),),
            ((f"{_MAIN}.resources", {"requests": {"example.com/gpu": "1"}}),),
            ((f"{_MAIN}.volumeMounts", [{"name": "none", "mountPath": "/x"}]),),
            ((f"{_MAIN}.volumeMounts", [{"name": "none", "mountPath": ""}]),),
            ((f"{_MAIN}.livenessProbe", {}),),
            ((f"{_MAIN}.livenessProbe", {"httpGet": {"port": "http"}, "periodSeconds": -1}),),
            ((f"{_MAIN}.livenessProbe", {"httpGet": {"port": 0}}),),
            ((f"{_MAIN}.livenessProbe", {"tcpSocket": {"port": 80}, "successThreshold": 2}),),
            ((f"{_MAIN}.readinessProbe", {"exec": {"command": []}}),),
            ((f"{_MAIN}.lifecycle", {"preStop": {}}),),
            ((f"{_MAIN}.securityContext", {"privileged": True, "allowPrivilegeEscalation": False}),),
            ((f"{_POD}.containers", [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]),),
            ((f"{_POD}.initContainers", [{"name": "main", "image": "x"}]),),
            ((f"{_POD}.volumes", [{"name": "v"}]),),
            ((f"{_POD}.volumes", [{"name": "V", "emptyDir": {}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "configMap": {}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "secret": {"secretName": ""}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "hostPath": {"path": ""}}]),),
            ((f"{_POD}.volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "A"}}]),),
            ((f"{_POD}.tolerations", [{"key": "a", "operator": "Other"}]),),
            ((f"{_POD}.tolerations", [{"operator": "Equal"}]),),
            ((f"{_POD}.tolerations", [{"key": "a", "operator": "Exists", "value": "b"}]),),
            ((f"{_POD}.tolerations", [{"key": "a", "effect": "Other", "operator": "Exists"}]),),
            ((f"{_POD}.tolerations", [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),),
            ((f"{_POD}.nodeSelector", {"a b": "c"}),),
            ((f"{_POD}.dnsPolicy", "Other"),),
            ((f"{_POD}.hostNetwork", True), (f"{_MAIN}.ports", [{"containerPort": 80, "hostPort": 81}])),
            ((f"{_POD}.terminationGracePeriodSeconds", -1),),
            ((f"{_POD}.activeDeadlineSeconds", 5),),
            ((f"{_POD}.serviceAccountName", "A B"),),
            ((f"{_POD}.imagePullSecrets", [{"name": ""}]),),
            (
                (
                    f"{_POD}.topologySpreadConstraints",
                    [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}],
                ),
            ),
            (
                (
                    f"{_POD}.affinity",
                    {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                        }
                    },
                ),
            ),
            (
                (
                    f"{_POD}.affinity",
                    {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]
                        }
                    },
                ),
            ),
            ((f"{_POD}.hostAliases", [{"ip": "x"}]),),
            ((f"{_POD}.priorityClassName", "A"),),
            ((f"{_POD}.hostname", "A"),),
            (("spec.template.metadata.labels.x", "a b"),),
            (("spec.template.metadata.annotations", {"a b": "c"}),),
        ],
        [],
    ),
    "statefulsets": story(
        "/apis/apps/v1/namespaces/{ns}/statefulsets",
        [
            *_WORKLOAD,
            (("spec.replicas", -1),),
            (("spec.serviceName", _NONE),),
            (("spec.podManagementPolicy", "Other"),),
            (("spec.updateStrategy", {"type": "Other"}),),
            (("spec.updateStrategy", {"rollingUpdate": {"partition": -1}}),),
            (
                (
                    "spec.volumeClaimTemplates",
                    [
                        {
                            "metadata": {"name": "d"},
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1Gi"}},
                            },
                        }
                    ],
                ),
            ),
            (("spec.ordinals", {"start": -1}),),
        ],
        [
            {"spec": {"serviceName": "two"}},
            {"spec": {"selector": {"matchLabels": {"app": "two"}}}},
            {"spec": {"podManagementPolicy": "Parallel"}},
            {"spec": {"replicas": 3, "minReadySeconds": 2}},
        ],
    ),
    "jobs": story(
        "/apis/batch/v1/namespaces/{ns}/jobs",
        [
            (("spec.parallelism", -1),),
            (("spec.completions", -1), ("spec.backoffLimit", -1)),
            (("spec.ttlSecondsAfterFinished", -1), ("spec.activeDeadlineSeconds", -1)),
            (("spec.template.spec.restartPolicy", "Always"),),
            (("spec.template.spec.restartPolicy", _NONE),),
            (("spec.selector", {"matchLabels": {"a": "b"}}),),
            (("spec.manualSelector", True),),
            (("spec.completionMode", "Other"),),
            (("spec.completionMode", "Indexed"),),
            (("spec.template", _NONE),),
            (("spec.podFailurePolicy", {"rules": []}),),
            (("spec.suspend", True), ("spec.parallelism", 3), ("spec.completions", 5)),
        ],
        [
            {"spec": {"completions": 4}},
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}},
            {"spec": {"parallelism": 2, "suspend": True}},
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        ],
    ),
    "cronjobs": story(
        "/apis/batch/v1/namespaces/{ns}/cronjobs",
        [
            (("spec.schedule", ""),),
            (("spec.schedule", "x"),),
            (("spec.schedule", "61 * * * *"),),
            (("spec.schedule", "* * * *"),),
            (("spec.schedule", "@hourly"),),
            (("spec.schedule", "TZ=UTC * * * * *"),),
            (("spec.timeZone", "Nowhere/Land"),),
            (("spec.timeZone", "Europe/Berlin"),),
            (("spec.concurrencyPolicy", "Other"),),
            (("spec.startingDeadlineSeconds", -1),),
            (("spec.successfulJobsHistoryLimit", -1), ("spec.failedJobsHistoryLimit", -1)),
            (("spec.jobTemplate.spec.template.spec.restartPolicy", "Always"),),
            (("spec.jobTemplate", _NONE),),
        ],
        [{"spec": {"schedule": "bad"}}, {"spec": {"suspend": True}}],
    ),
}

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
            (("spec.defaultBackend", _BACKEND), ("spec.rules", _NONE)),
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
            (("spec.minAvailable", _NONE), ("spec.maxUnavailable", "50%")),
            (("spec.selector.matchLabels", {"a b": "c"}),),
            (("spec.unhealthyPodEvictionPolicy", "Other"),),
        ],
        [{"spec": {"minAvailable": 2}}],
    ),
    "autoscalers": story(
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        [
            (("spec.maxReplicas", _NONE),),
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
            (("spec.resources", _NONE),),
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
