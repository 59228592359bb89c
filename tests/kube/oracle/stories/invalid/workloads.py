"""Invalid Deployments, pods, Jobs and other workloads."""

from typing import Final

from tests.kube.oracle.stories.invalid.changes import ABSENT, Change, story

_POD: Final = "spec.template.spec"
_MAIN: Final = f"{_POD}.containers.0"
_SELECTOR: Final = "spec.selector.matchLabels"
_WORKLOAD: Final[list[tuple[Change, ...]]] = [
    (("spec.selector", ABSENT),),
    (("spec.selector", {}),),
    ((_SELECTOR, {"app": "two"}),),
    ((_SELECTOR, {"a b": "c"}),),
    (("spec.selector.matchExpressions", [{"key": "a", "operator": "Other"}]),),
    (("spec.selector.matchExpressions", [{"key": "a", "operator": "In"}]),),
    (("spec.template", ABSENT),),
    (("spec.template.metadata.labels", ABSENT),),
    ((f"{_POD}.containers", []),),
    ((f"{_POD}.containers", ABSENT),),
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
            ((f"{_MAIN}.name", ABSENT),),
            ((f"{_MAIN}.name", "Upper"),),
            ((f"{_MAIN}.image", ABSENT),),
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
            (("spec.serviceName", ABSENT),),
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
            (("spec.template.spec.restartPolicy", ABSENT),),
            (("spec.selector", {"matchLabels": {"a": "b"}}),),
            (("spec.manualSelector", True),),
            (("spec.completionMode", "Other"),),
            (("spec.completionMode", "Indexed"),),
            (("spec.template", ABSENT),),
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
            (("spec.jobTemplate", ABSENT),),
        ],
        [{"spec": {"schedule": "bad"}}, {"spec": {"suspend": True}}],
    ),
}
