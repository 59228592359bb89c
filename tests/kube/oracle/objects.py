"""Objects of the stories: a minimal one of each kind."""

from typing import Final

from events.json_values import Json


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
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": _labelled(name)},
            "template": pod_template(name),
            **spec,
        },
    }


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _of(api_version: str, kind: str, name: str, **fields: object) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _running() -> Json:
    containers = [{"name": "main", "image": "busybox"}]
    return {"template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}


RULES: Final = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
RBAC: Final = "rbac.authorization.k8s.io/v1"
_BACKEND: Final = {"service": {"name": "web", "port": {"number": 80}}}

KINDS: Final[dict[str, Json]] = {
    "/apis/apps/v1/namespaces/{ns}/deployments": deployment("one"),
    "/apis/apps/v1/namespaces/{ns}/statefulsets": _of(
        "apps/v1",
        "StatefulSet",
        "one",
        spec={
            "serviceName": "one",
            "selector": {"matchLabels": _labelled("one")},
            "template": pod_template("one"),
        },
    ),
    "/apis/apps/v1/namespaces/{ns}/daemonsets": _of(
        "apps/v1",
        "DaemonSet",
        "one",
        spec={"selector": {"matchLabels": _labelled("one")}, "template": pod_template("one")},
    ),
    "/apis/batch/v1/namespaces/{ns}/cronjobs": _of(
        "batch/v1",
        "CronJob",
        "one",
        spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": _running()}},
    ),
    "/apis/batch/v1/namespaces/{ns}/jobs": _of("batch/v1", "Job", "one", spec=_running()),
    "/api/v1/namespaces/{ns}/services": _of(
        "v1", "Service", "one", spec={"selector": _labelled("one"), "ports": [{"port": 80}]}
    ),
    "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses": _of(
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
    "/api/v1/namespaces/{ns}/secrets": _of("v1", "Secret", "one", stringData={"a": "1"}),
    "/api/v1/namespaces/{ns}/serviceaccounts": _of("v1", "ServiceAccount", "one"),
    f"/apis/{RBAC}/namespaces/{{ns}}/roles": _of(RBAC, "Role", "one", rules=RULES),
    f"/apis/{RBAC}/namespaces/{{ns}}/rolebindings": _of(
        RBAC,
        "RoleBinding",
        "one",
        roleRef={"kind": "Role", "name": "one", "apiGroup": "rbac.authorization.k8s.io"},
        subjects=[{"kind": "User", "name": "ann"}],
    ),
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": _of(
        "policy/v1",
        "PodDisruptionBudget",
        "one",
        spec={"minAvailable": 1, "selector": {"matchLabels": _labelled("one")}},
    ),
    "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers": _of(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "one",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"},
            "maxReplicas": 3,
        },
    ),
    "/api/v1/namespaces/{ns}/persistentvolumeclaims": _of(
        "v1",
        "PersistentVolumeClaim",
        "one",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies": _of(
        "networking.k8s.io/v1", "NetworkPolicy", "one", spec={"podSelector": {}, "policyTypes": ["Ingress"]}
    ),
    "/api/v1/namespaces": _of("v1", "Namespace", "of-the-kinds"),
    f"/apis/{RBAC}/clusterroles": _of(RBAC, "ClusterRole", "of-the-kinds", rules=RULES),
    "/apis/scheduling.k8s.io/v1/priorityclasses": _of(
        "scheduling.k8s.io/v1", "PriorityClass", "of-the-kinds", value=10
    ),
    "/apis/storage.k8s.io/v1/storageclasses": _of(
        "storage.k8s.io/v1", "StorageClass", "of-the-kinds", provisioner="example.com/disk"
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
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.shop.example.com"},
        "spec": {
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
    }


def gadget(name: str, **spec: object) -> Json:
    """An object of the custom kind."""
    return {
        "apiVersion": GADGET_VERSION,
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }
