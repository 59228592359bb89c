"""Objects of the stories: a minimal one of each kind."""

from typing import Final

from events.json_values import Json
from tests.builders.manifests import config_map, manifest


def _labelled(name: str) -> Json:
    return {"app": name}


def pod_template(name: str) -> Json:
    """A pod template with one container."""
    return {
        "metadata": {"labels": _labelled(name)},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
    }


def deployment(name: str, **spec: object) -> Json:
    """A Deployment of two replicas."""
    return manifest(
        "apps/v1",
        "Deployment",
        name,
        spec={
            "replicas": 2,
            "selector": {"matchLabels": _labelled(name)},
            "template": pod_template(name),
            **spec,
        },
    )


def _running() -> Json:
    containers = [{"name": "main", "image": "busybox"}]
    return {"template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}


def _devices() -> Json:
    """Devices of a ResourceClaim: one GPU, and the best of two others."""
    choices = [{"name": name, "deviceClassName": f"{name}-gpu"} for name in ("large", "small")]
    return {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
            {"name": "other", "firstAvailable": choices},
        ],
        "constraints": [{"requests": ["gpu", "other/small"], "matchAttribute": "gpu.example.com/model"}],
    }


RULES: Final = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
RBAC: Final = "rbac.authorization.k8s.io/v1"
DEVICES: Final = "resource.k8s.io/v1"
FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io/v1"
STORAGE: Final = "storage.k8s.io/v1"
_BACKEND: Final = {"service": {"name": "web", "port": {"number": 80}}}

KINDS: Final[dict[str, Json]] = {
    "/apis/apps/v1/namespaces/{ns}/deployments": deployment("one"),
    "/apis/apps/v1/namespaces/{ns}/statefulsets": manifest(
        "apps/v1",
        "StatefulSet",
        "one",
        spec={
            "serviceName": "one",
            "selector": {"matchLabels": _labelled("one")},
            "template": pod_template("one"),
        },
    ),
    "/apis/apps/v1/namespaces/{ns}/daemonsets": manifest(
        "apps/v1",
        "DaemonSet",
        "one",
        spec={"selector": {"matchLabels": _labelled("one")}, "template": pod_template("one")},
    ),
    "/apis/batch/v1/namespaces/{ns}/cronjobs": manifest(
        "batch/v1",
        "CronJob",
        "one",
        spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": _running()}},
    ),
    "/apis/batch/v1/namespaces/{ns}/jobs": manifest("batch/v1", "Job", "one", spec=_running()),
    "/api/v1/namespaces/{ns}/services": manifest(
        "v1", "Service", "one", spec={"selector": _labelled("one"), "ports": [{"port": 80}]}
    ),
    "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses": manifest(
        "networking.k8s.io/v1",
        "Ingress",
        "one",
        spec={
            "rules": [
                {
                    "host": "a.example.com",
                    "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]},
                }
            ]
        },
    ),
    "/api/v1/namespaces/{ns}/configmaps": config_map("one", a="1"),
    "/api/v1/namespaces/{ns}/secrets": manifest("v1", "Secret", "one", stringData={"a": "1"}),
    "/api/v1/namespaces/{ns}/serviceaccounts": manifest("v1", "ServiceAccount", "one"),
    f"/apis/{RBAC}/namespaces/{{ns}}/roles": manifest(RBAC, "Role", "one", rules=RULES),
    f"/apis/{RBAC}/namespaces/{{ns}}/rolebindings": manifest(
        RBAC,
        "RoleBinding",
        "one",
        roleRef={"kind": "Role", "name": "one", "apiGroup": "rbac.authorization.k8s.io"},
        subjects=[{"kind": "User", "name": "ann"}],
    ),
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": manifest(
        "policy/v1",
        "PodDisruptionBudget",
        "one",
        spec={"minAvailable": 1, "selector": {"matchLabels": _labelled("one")}},
    ),
    "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers": manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "one",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"},
            "maxReplicas": 3,
        },
    ),
    "/api/v1/namespaces/{ns}/persistentvolumeclaims": manifest(
        "v1",
        "PersistentVolumeClaim",
        "one",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies": manifest(
        "networking.k8s.io/v1", "NetworkPolicy", "one", spec={"podSelector": {}, "policyTypes": ["Ingress"]}
    ),
    "/api/v1/namespaces": manifest("v1", "Namespace", "of-the-kinds"),
    f"/apis/{RBAC}/clusterroles": manifest(RBAC, "ClusterRole", "of-the-kinds", rules=RULES),
    "/apis/scheduling.k8s.io/v1/priorityclasses": manifest(
        "scheduling.k8s.io/v1", "PriorityClass", "of-the-kinds", value=10
    ),
    "/apis/storage.k8s.io/v1/storageclasses": manifest(
        "storage.k8s.io/v1", "StorageClass", "of-the-kinds", provisioner="example.com/disk"
    ),
    "/apis/networking.k8s.io/v1/servicecidrs": manifest(
        "networking.k8s.io/v1", "ServiceCIDR", "of-the-kinds", spec={"cidrs": ["10.97.0.0/16"]}
    ),
    "/apis/node.k8s.io/v1/runtimeclasses": manifest(
        "node.k8s.io/v1",
        "RuntimeClass",
        "of-the-kinds",
        handler="gvisor",
        overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        scheduling={"nodeSelector": {"runtime": "gvisor"}, "tolerations": [{"operator": "Exists"}]},
    ),
    f"/apis/{STORAGE}/volumeattributesclasses": manifest(
        STORAGE,
        "VolumeAttributesClass",
        "of-the-kinds",
        driverName="disk.example.com",
        parameters={"iops": "5000"},
    ),
    f"/apis/{STORAGE}/namespaces/{{ns}}/csistoragecapacities": manifest(
        STORAGE,
        "CSIStorageCapacity",
        "one",
        storageClassName="fast",
        nodeTopology={"matchLabels": {"zone": "a"}},
        capacity="10Gi",
    ),
    f"/apis/{DEVICES}/deviceclasses": manifest(
        DEVICES,
        "DeviceClass",
        "of-the-kinds",
        spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    ),
    f"/apis/{DEVICES}/namespaces/{{ns}}/resourceclaims": manifest(
        DEVICES, "ResourceClaim", "one", spec={"devices": _devices()}
    ),
    f"/apis/{DEVICES}/namespaces/{{ns}}/resourceclaimtemplates": manifest(
        DEVICES,
        "ResourceClaimTemplate",
        "one",
        spec={"metadata": {"labels": {"a": "b"}}, "spec": {"devices": _devices()}},
    ),
    f"/apis/{DEVICES}/resourceslices": manifest(
        DEVICES,
        "ResourceSlice",
        "of-the-kinds",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "node1",
            "pool": {"name": "node1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "x"}}}],
        },
    ),
    f"/apis/{FLOW_CONTROL}/flowschemas": manifest(
        FLOW_CONTROL,
        "FlowSchema",
        "of-the-kinds",
        spec={
            "priorityLevelConfiguration": {"name": "exempt"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "ann"}}],
                    "resourceRules": [
                        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
                    ],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                }
            ],
        },
    ),
    f"/apis/{FLOW_CONTROL}/prioritylevelconfigurations": manifest(
        FLOW_CONTROL,
        "PriorityLevelConfiguration",
        "of-the-kinds",
        spec={"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 16}}}},
    ),
}
"""An object by the path of its kind."""


def named(value: Json, name: str) -> Json:
    """The object under another name."""
    metadata = value["metadata"]
    assert isinstance(metadata, dict)
    return {**value, "metadata": {**metadata, "name": name}}


GADGETS: Final = "gadgets.shop.example.com"
GADGET_VERSION: Final = "shop.example.com/v1"


def _schema() -> Json:
    return {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                    "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "replicas": {"type": "integer", "default": 1},
                    "parts": {
                        "type": "array",
                        "maxItems": 3,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "weight": {"type": "integer", "default": 5},
                            },
                        },
                    },
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "port": {"x-kubernetes-int-or-string": True},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}},
            },
        },
    }


def definition(plural: str = "gadgets", kind: str = "Gadget", **version: object) -> Json:
    """A definition of a custom kind with a schema, columns, status and scale."""
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.shop.example.com",
        spec={
            "group": "shop.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": [plural[:2]]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    **version,
                }
            ],
        },
    )


def gadget(name: str, **spec: object) -> Json:
    """An object of the custom kind."""
    return manifest(GADGET_VERSION, "Gadget", name, spec={"size": 1, **spec})
