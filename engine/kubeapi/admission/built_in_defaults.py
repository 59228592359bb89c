"""Defaults that the API server sets in Kubernetes' own kinds, from the published API.

An object is stored and propagated as the client wrote it; its defaults are added when it is read. Writing it back
with its defaults is not a change (``same``).
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from engine.kubeapi.admission import computed_defaults
from engine.kubeapi.rights.parsing import GROUP
from events.json_values import Json, as_list, as_object, at, object_at
from events.kube_objects import KubeObject

_Fill: TypeAlias = Callable[[Json], Json]
"""Returns an object with its defaults."""

_INT_MAX: Final = 2**31 - 1
_RETENTION: Final = "persistentVolumeClaimRetentionPolicy"
_LATEST: Final = "latest"
_NO_FIELDS: Final[Mapping[str, _Fill]] = {}
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINERS: Final = ("containers", "initContainers")


def with_defaults(value: KubeObject) -> KubeObject:
    """Return the object with API server defaults; unknown kinds and malformed specs are returned unchanged."""
    fill = _OF_KINDS.get(value.type_meta)
    return value if fill is None else KubeObject(fill(value.document))


def same(old: KubeObject, new: KubeObject) -> bool:
    """Whether two objects are equal after defaulting, except for metadata and status."""
    left, right = (
        {
            name: item
            for name, item in with_defaults(version).document.items()
            if name not in ("metadata", "status")
        }
        for version in (old, new)
    )
    return left == right


def _fill(fields: Json, below: Mapping[str, _Fill] = _NO_FIELDS) -> _Fill:
    """Return a function that adds missing ``fields`` to an object, and then sets the defaults of nested objects.

    ``below`` maps field names to functions. Each function is applied to the object in the field, or to each object in
    the field's list.
    """

    def filled(value: Json) -> Json:
        result = {**fields, **value}
        for name, fill in below.items():
            item = fields.get(name) if result.get(name) is None else result[name]
            if (inner := as_object(item)) is not None:
                result[name] = fill(inner)
            elif (items := as_list(item)) is not None:
                result[name] = [item if (inner := as_object(item)) is None else fill(inner) for item in items]
        return result

    return filled


def _spec(fields: Json, below: Mapping[str, _Fill] = _NO_FIELDS) -> _Fill:
    return _of_spec(_fill(fields, below))


def _of_spec(fill: _Fill) -> _Fill:
    return _fill({"spec": {}}, {"spec": fill})


def _strategy(rolling: Json) -> _Fill:
    """Return a function that sets the defaults of an update strategy.

    ``rolling`` are the default parameters of the strategy RollingUpdate.
    """

    def filled(strategy: Json) -> Json:
        result = {"type": "RollingUpdate", **strategy}
        if result["type"] == "RollingUpdate":
            result["rollingUpdate"] = {**rolling, **object_at(strategy, "rollingUpdate")}
        return result

    return filled


def _stateful_strategy(strategy: Json) -> Json:
    # Unlike in Deployments, a strategy with a type but without parameters gets no default parameters.
    is_complete = "type" in strategy and "rollingUpdate" not in strategy
    return strategy if is_complete else _strategy({"partition": 0})(strategy)


def _pull_policy(image: object) -> str:
    """Return the default pull policy: Always for images without a tag or with ``latest``."""
    text = image if isinstance(image, str) else ""
    if "@" in text or text != text.strip():
        return "IfNotPresent"
    _path, colon, tag = text.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == _LATEST else "IfNotPresent"


_HTTP: Final = _fill({"path": "/", "scheme": "HTTP"})
_PROBE: Final = _fill(
    {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    {"httpGet": _HTTP, "grpc": _fill({"service": ""})},
)
_HANDLER: Final = _fill({}, {"httpGet": _HTTP})
_PORT: Final = _fill({"protocol": "TCP"})
_PORTS: Final = _fill({}, {"ports": _PORT})
_REFERENCES: Final = {"fieldRef": _fill({"apiVersion": "v1"}), "resourceFieldRef": _fill({"divisor": "0"})}
_VARIABLE: Final = _fill({}, {"valueFrom": _fill({}, _REFERENCES)})
_PARTS_OF_CONTAINERS: Final = _fill(
    {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    },
    {
        **dict.fromkeys(PROBES, _PROBE),
        "lifecycle": _fill({}, {"postStart": _HANDLER, "preStop": _HANDLER}),
        "env": _VARIABLE,
        "ports": _PORT,
    },
)
_CLAIM: Final = _fill({"volumeMode": "Filesystem"})
_MODE: Final[Json] = {"defaultMode": 420}
_ITEMS: Final = {"items": _fill({}, _REFERENCES)}
_SOURCE: Final = _fill(
    {}, {"downwardAPI": _fill({}, _ITEMS), "serviceAccountToken": _fill({"expirationSeconds": 3_600})}
)
_DRIVERS: Final = {"hostPath": _fill({"type": ""}), "iscsi": _fill({"iscsiInterface": "default"})}
_PARTS_OF_VOLUMES: Final = _fill(
    {},
    {
        **_DRIVERS,
        "configMap": _fill(_MODE),
        "secret": _fill(_MODE),
        "downwardAPI": _fill(_MODE, _ITEMS),
        "projected": _fill(_MODE, {"sources": _SOURCE}),
        "ephemeral": _fill({}, {"volumeClaimTemplate": _fill({"metadata": {}}, {"spec": _CLAIM})}),
    },
)


def _container(value: Json) -> Json:
    return _PARTS_OF_CONTAINERS({"imagePullPolicy": _pull_policy(value.get("image")), **value})


def _volume(value: Json) -> Json:
    return _PARTS_OF_VOLUMES(value if value.keys() - {"name"} else {**value, "emptyDir": {}})


_PARTS_OF_PODS: Final = _fill(
    {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
    {**dict.fromkeys(_CONTAINERS, _container), "volumes": _volume},
)


def _pod(spec: Json) -> Json:
    name = spec.get("serviceAccountName")
    return _PARTS_OF_PODS({"serviceAccount": name, **spec} if name else spec)


def _with_requests(container: Json) -> Json:
    limits, requests = (object_at(container, "resources", name) for name in ("limits", "requests"))
    if not limits:
        return container
    resources = {**object_at(container, "resources"), "requests": {**limits, **requests}}
    return {**container, "resources": resources}


_REQUESTS: Final = _fill({"enableServiceLinks": True}, dict.fromkeys(_CONTAINERS, _with_requests))
_HOST_PORTS: Final = _fill(
    {},
    dict.fromkeys(
        _CONTAINERS, _fill({}, {"ports": lambda port: {"hostPort": port.get("containerPort"), **port}})
    ),
)


def _single_pod(spec: Json) -> Json:
    """Return the spec of a Pod with defaults.

    Two defaults do not apply to pod templates: requests default to limits, and with ``hostNetwork`` each ``hostPort``
    defaults to its ``containerPort``.
    """
    result = _REQUESTS(_pod(spec))
    return _HOST_PORTS(result) if spec.get("hostNetwork") is True else result


_TEMPLATE: Final = _fill({"metadata": {}}, {"spec": _pod})
_TEMPLATES: Final = {"template": _TEMPLATE}
_CONDITIONS: Final = _fill({}, {"onPodConditions": _fill({"status": "True"})})
_PARTS_OF_JOBS: Final = _fill(
    {"completionMode": "NonIndexed", "suspend": False, "parallelism": 1},
    {**_TEMPLATES, "podFailurePolicy": _fill({}, {"rules": _CONDITIONS})},
)


def _job(spec: Json) -> Json:
    head: Json = {
        # With a limit per index, the limit of the whole Job defaults to the largest number.
        "backoffLimit": _INT_MAX if "backoffLimitPerIndex" in spec else 6,
        # Kubernetes refuses any other value beside a podFailurePolicy.
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    }
    if "parallelism" not in spec:
        head["completions"] = 1
    return _PARTS_OF_JOBS({**head, **spec})


_STICKY: Final = _fill({"clientIP": {}}, {"clientIP": _fill({"timeoutSeconds": 10_800})})
_PARTS_OF_SERVICES: Final = _fill(
    {}, {"ports": lambda port: {**_PORT(port), "targetPort": port.get("targetPort") or port.get("port")}}
)


def _service(spec: Json) -> Json:
    type_name = spec.get("type")
    head: Json = {"type": "ClusterIP", "sessionAffinity": "None"}
    if type_name != "ExternalName":
        head["internalTrafficPolicy"] = "Cluster"
        spec = {**spec, **computed_defaults.ip_families(spec)}
    if type_name in ("LoadBalancer", "NodePort") or spec.get("externalIPs"):
        head["externalTrafficPolicy"] = "Cluster"
    if type_name == "LoadBalancer":
        head["allocateLoadBalancerNodePorts"] = True
    result = _PARTS_OF_SERVICES({**head, **spec})
    if result["sessionAffinity"] == "ClientIP":
        result["sessionAffinityConfig"] = _STICKY(object_at(spec, "sessionAffinityConfig"))
    elif result["sessionAffinity"] == "None":
        result.pop("sessionAffinityConfig", None)
    return result


def _scaling(*policies: tuple[str, int], **fields: object) -> _Fill:
    """Return a function that sets the default scaling rules of one direction; a policy is its type and its value."""
    listed = [{"type": name, "value": value, "periodSeconds": 15} for name, value in policies]
    return _fill({"selectPolicy": "Max", "policies": listed, **fields})


_SCALING: Final = {
    "scaleUp": _scaling(("Pods", 4), ("Percent", 100), stabilizationWindowSeconds=0),
    "scaleDown": _scaling(("Percent", 100)),
}
_PARTS_OF_AUTOSCALERS: Final = _fill(
    {"minReplicas": 1}, {"behavior": _fill({"scaleUp": {}, "scaleDown": {}}, _SCALING)}
)
_METRIC: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _autoscaler(spec: Json) -> Json:
    result = _PARTS_OF_AUTOSCALERS(spec)
    return result if result.get("metrics") else {**result, "metrics": [_METRIC]}


def _network_policy(spec: Json) -> Json:
    """Set the default policyTypes (Ingress, and Egress if the policy has egress rules) and the protocol of ports."""
    types = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return _fill({"policyTypes": types}, {"ingress": _PORTS, "egress": _PORTS})(spec)


def _replication_controller(spec: Json) -> Json:
    """Return the spec with defaults: one replica, and the labels of the template as selector."""
    labels = as_object(at(spec, "template", "metadata", "labels"))
    return _fill({"replicas": 1, **({"selector": labels} if labels else {})}, _TEMPLATES)(spec)


def _in_rbac(reference: Json) -> Json:
    # Clients in Go send an empty group, which gets the default too.
    return {**reference, "apiGroup": reference.get("apiGroup") or GROUP}


def _subject(subject: Json) -> Json:
    return _in_rbac(subject) if subject.get("kind") in ("User", "Group") else subject


_BINDING: Final = _fill({}, {"roleRef": _in_rbac, "subjects": _subject})
_RULES: Final = _fill({"scope": "*"})
_MATCHED: Final[Json] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_MATCHES: Final = _fill(_MATCHED, {"resourceRules": _RULES, "excludeResourceRules": _RULES})
_CLIENT: Final = _fill({}, {"service": _fill({"port": 443})})
_HOOK: Final[Json] = {**_MATCHED, "failurePolicy": "Fail", "timeoutSeconds": 10}
_PARTS_OF_HOOKS: Final = {"rules": _RULES, "clientConfig": _CLIENT}
_QUEUES: Final = _fill({"queues": 64, "handSize": 8, "queueLengthLimit": 50})
_LIMITED: Final = _fill(
    {"nominalConcurrencyShares": 30, "lendablePercent": 0}, {"limitResponse": _fill({}, {"queuing": _QUEUES})}
)
_DESCRIPTION: Final = computed_defaults.requested_devices
_REQUEST: Final = _fill({}, {"exactly": _DESCRIPTION, "firstAvailable": _DESCRIPTION})
_DEVICE_CLAIM: Final = _fill({"devices": {}}, {"devices": _fill({}, {"requests": _REQUEST})})
_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"

_OF_KINDS: Final[Mapping[tuple[str, str], _Fill]] = {
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): _fill(
        {}, {"webhooks": _fill({**_HOOK, "reinvocationPolicy": "Never"}, _PARTS_OF_HOOKS)}
    ),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): _spec(
        {"failurePolicy": "Fail"}, {"matchConstraints": _MATCHES}
    ),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): _spec(
        {}, {"matchResources": _MATCHES}
    ),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): _fill(
        {}, {"webhooks": _fill(_HOOK, _PARTS_OF_HOOKS)}
    ),
    ("apps/v1", "DaemonSet"): _spec(
        {"revisionHistoryLimit": 10, "updateStrategy": {}},
        {**_TEMPLATES, "updateStrategy": _strategy({"maxUnavailable": 1, "maxSurge": 0})},
    ),
    ("apps/v1", "Deployment"): _spec(
        {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}},
        {**_TEMPLATES, "strategy": _strategy({"maxUnavailable": "25%", "maxSurge": "25%"})},
    ),
    ("apps/v1", "ReplicaSet"): _spec({"replicas": 1}, _TEMPLATES),
    ("apps/v1", "StatefulSet"): _spec(
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {},
            _RETENTION: {},
        },
        {
            **_TEMPLATES,
            "updateStrategy": _stateful_strategy,
            _RETENTION: _fill({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            "volumeClaimTemplates": _fill(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}, "status": {}},
                {"spec": _CLAIM, "status": _fill({"phase": "Pending"})},
            ),
        },
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): _of_spec(computed_defaults.definition),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _spec({"minReplicas": 1}),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _of_spec(_autoscaler),
    ("batch/v1", "CronJob"): _spec(
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
        {"jobTemplate": _fill({"metadata": {}}, {"spec": _fill({}, _TEMPLATES)})},
    ),
    ("batch/v1", "Job"): _of_spec(_job),
    ("discovery.k8s.io/v1", "EndpointSlice"): _fill(
        {}, {"endpoints": _fill({"conditions": {}}), "ports": _fill({"name": "", "protocol": "TCP"})}
    ),
    (_FLOW_CONTROL, "FlowSchema"): _spec({"matchingPrecedence": 1_000}),
    (_FLOW_CONTROL, "PriorityLevelConfiguration"): _spec(
        {}, {"exempt": _fill({"nominalConcurrencyShares": 0, "lendablePercent": 0}), "limited": _LIMITED}
    ),
    ("networking.k8s.io/v1", "IngressClass"): _spec({}, {"parameters": _fill({"scope": "Cluster"})}),
    ("networking.k8s.io/v1", "NetworkPolicy"): _of_spec(_network_policy),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _BINDING,
    (_DEVICES, "DeviceClass"): _spec({}),
    (_DEVICES, "ResourceClaim"): _of_spec(_DEVICE_CLAIM),
    (_DEVICES, "ResourceClaimTemplate"): _spec({"metadata": {}, "spec": {}}, {"spec": _DEVICE_CLAIM}),
    ("scheduling.k8s.io/v1", "PriorityClass"): _fill({"preemptionPolicy": "PreemptLowerPriority"}),
    ("storage.k8s.io/v1", "CSIDriver"): _spec(
        {
            "attachRequired": True,
            "podInfoOnMount": False,
            "volumeLifecycleModes": ["Persistent"],
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "requiresRepublish": False,
            "seLinuxMount": False,
        }
    ),
    ("storage.k8s.io/v1", "StorageClass"): _fill(
        {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    ),
    ("v1", "Endpoints"): _fill({}, {"subsets": _PORTS}),
    ("v1", "LimitRange"): _spec({}, {"limits": computed_defaults.limit}),
    ("v1", "PersistentVolume"): _spec(
        {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}, _DRIVERS
    ),
    ("v1", "PersistentVolumeClaim"): _of_spec(_CLAIM),
    ("v1", "Pod"): _of_spec(_single_pod),
    ("v1", "PodTemplate"): _fill({}, _TEMPLATES),
    ("v1", "ReplicationController"): _of_spec(_replication_controller),
    ("v1", "Secret"): _fill({"type": "Opaque"}),
    ("v1", "Service"): _of_spec(_service),
}
"""By kind: the function that sets the defaults of an object."""
