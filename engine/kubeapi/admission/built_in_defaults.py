"""Defaults that the API server sets in Kubernetes' own kinds, from the published API.

An object is stored and propagated as the client wrote it; its defaults are added when it is read. Writing it back
with its defaults is no change (``same``).
"""

from collections.abc import Callable, Mapping
from typing import Final

from engine.kubeapi.admission.rules import rbac
from events.json_values import Json, as_list, as_object, at, object_at
from events.kube_objects import KubeObject

_INT_MAX: Final = 2**31 - 1
_MODE: Final = 420
_RETENTION: Final = "persistentVolumeClaimRetentionPolicy"
_STICKY_SECONDS: Final = 10_800
_PROBE: Final[Json] = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_POD: Final[Json] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER: Final[Json] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_CONTAINERS: Final = ("containers", "initContainers")
_LATEST: Final = "latest"

_METRICS: Final = (
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    },
)
"""Default metrics of an autoscaler that has none."""


def with_defaults(value: KubeObject) -> KubeObject:
    """Return the object with API server defaults; unknown kinds and malformed specs are returned unchanged."""
    type_meta = value.type_meta
    if fill := _OF_OBJECTS.get(type_meta):
        return KubeObject(fill(value.document))
    fill, spec = _OF_SPECS.get(type_meta), as_object(value.document.get("spec") or {})
    return value if fill is None or spec is None else value.with_fields({"spec": fill(spec)})


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


def _deployment(spec: Json) -> Json:
    rolling: Json = {"maxUnavailable": "25%", "maxSurge": "25%"}
    head: Json = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    return _with_template({**head, **spec, "strategy": _strategy(spec.get("strategy"), rolling)})


def _stateful_set(spec: Json) -> Json:
    head: Json = {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
    }
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    strategy = _strategy(spec.get("updateStrategy"), {"partition": 0})
    result = {**head, **spec, "updateStrategy": strategy, _RETENTION: {**kept, **object_at(spec, _RETENTION)}}
    return _with_template(_map_items(result, "volumeClaimTemplates", _claim_template))


def _claim_template(value: Json) -> Json:
    head: Json = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    status = {"phase": "Pending", **object_at(value, "status")}
    return {**head, **value, "spec": _claim(object_at(value, "spec")), "status": status}


def _daemon_set(spec: Json) -> Json:
    strategy = _strategy(spec.get("updateStrategy"), {"maxUnavailable": 1, "maxSurge": 0})
    return _with_template({"revisionHistoryLimit": 10, **spec, "updateStrategy": strategy})


def _replica_set(spec: Json) -> Json:
    return _with_template({"replicas": 1, **spec})


def _job(spec: Json) -> Json:
    head: Json = {
        # A limit for each index replaces that of the whole Job.
        "backoffLimit": _INT_MAX if "backoffLimitPerIndex" in spec else 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        # Kubernetes refuses any other value beside a podFailurePolicy.
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        "parallelism": 1,
    }
    if "parallelism" not in spec:
        head["completions"] = 1
    return _with_template({**head, **spec})


def _cron_job(spec: Json) -> Json:
    head: Json = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    template = as_object(spec.get("jobTemplate"))
    job = as_object((template or {}).get("spec"))
    if template is None or job is None:
        return {**head, **spec}
    return {**head, **spec, "jobTemplate": {"metadata": {}, **template, "spec": _with_template(job)}}


def _service(spec: Json) -> Json:
    head: Json = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    if spec.get("type") == "ExternalName":
        head.pop("internalTrafficPolicy")
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        head["externalTrafficPolicy"] = "Cluster"
    result = {**head, **spec}
    if result["sessionAffinity"] == "ClientIP":
        sticky = {"timeoutSeconds": _STICKY_SECONDS, **object_at(spec, "sessionAffinityConfig", "clientIP")}
        result["sessionAffinityConfig"] = {"clientIP": sticky}
    elif result["sessionAffinity"] == "None":
        result.pop("sessionAffinityConfig", None)
    return _map_items(result, "ports", _service_port)


def _service_port(port: Json) -> Json:
    return {**_port(port), "targetPort": port.get("targetPort") or port.get("port")}


def _claim(spec: Json) -> Json:
    return {"volumeMode": "Filesystem", **spec}


def _autoscaler(spec: Json) -> Json:
    result = {"minReplicas": 1, **spec}
    return result if result.get("metrics") else {**result, "metrics": list(_METRICS)}


def _volume_of_cluster(spec: Json) -> Json:
    result = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", **spec}
    fields = as_object(spec.get("hostPath"))
    return result if fields is None else {**result, "hostPath": {"type": "", **fields}}


def _network_policy(spec: Json) -> Json:
    """Set the default policyTypes (Ingress, and Egress if the policy has egress rules) and the protocol of ports."""
    result = {"policyTypes": ["Ingress", *(["Egress"] if spec.get("egress") else [])], **spec}
    for way in ("ingress", "egress"):
        result = _map_items(result, way, _with_protocols)
    return result


def _limit_range(spec: Json) -> Json:
    return _map_items(spec, "limits", _limit)


def _limit(limit: Json) -> Json:
    """Return an item of a LimitRange for containers with its defaults filled in; other items are returned unchanged.

    Limits default to ``max``; requests default to the default limits, then to ``min``.
    """
    if limit.get("type") != "Container":
        return limit
    most, least = object_at(limit, "max"), object_at(limit, "min")
    default = {**most, **object_at(limit, "default")}
    default_requests = {**least, **default, **object_at(limit, "defaultRequest")}
    amounts = {"default": default, "defaultRequest": default_requests}
    return {**limit, **{name: amount for name, amount in amounts.items() if amount}}


def _driver(spec: Json) -> Json:
    return {
        "attachRequired": True,
        "podInfoOnMount": False,
        "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
        **spec,
    }


def _replication_controller(spec: Json) -> Json:
    """Return the spec with defaults: one replica, and the labels of the template as selector."""
    template = object_at(spec, "template")
    labels = as_object(at(template, "metadata", "labels"))
    head: Json = {"replicas": 1, **({"selector": labels} if labels else {})}
    return _with_template({**head, **spec})


def _endpoints(value: Json) -> Json:
    return _map_items(value, "subsets", _with_protocols)


def _with_protocols(value: Json) -> Json:
    return _map_items(value, "ports", _port)


def _port(port: Json) -> Json:
    return {"protocol": "TCP", **port}


def _binding(value: Json) -> Json:
    """Set the API group of the role, and of User and Group subjects, to that of RBAC if it is missing or empty."""
    if (role := as_object(value.get("roleRef"))) is not None:
        value = {**value, "roleRef": _in_rbac(role)}
    return _map_items(value, "subjects", _subject)


def _subject(subject: Json) -> Json:
    return _in_rbac(subject) if subject.get("kind") in ("User", "Group") else subject


def _in_rbac(reference: Json) -> Json:
    # Clients in Go send the empty group of a roleRef.
    return {**reference, "apiGroup": reference.get("apiGroup") or rbac.RIGHTS}


def _strategy(value: object, rolling: Json) -> Json:
    strategy = object_at(value)
    result = {"type": "RollingUpdate", **strategy}
    if result["type"] == "RollingUpdate":
        result["rollingUpdate"] = {**rolling, **object_at(strategy, "rollingUpdate")}
    return result


def _with_template(spec: Json) -> Json:
    template = as_object(spec.get("template"))
    pod = as_object((template or {}).get("spec"))
    if template is None or pod is None:
        return spec
    return {**spec, "template": {"metadata": {}, **template, "spec": _pod(pod)}}


def _pod(spec: Json) -> Json:
    result = {**_POD, **spec}
    if name := spec.get("serviceAccountName"):
        result.setdefault("serviceAccount", name)
    for field in _CONTAINERS:
        result = _map_items(result, field, _container)
    return _map_items(result, "volumes", _volume)


def _container(value: Json) -> Json:
    result = {**_CONTAINER, "imagePullPolicy": _pull_policy(value.get("image")), **value}
    for name in PROBES:
        probe = as_object(value.get(name))
        if probe is not None:
            result[name] = _probe(probe)
    return _with_protocols(_map_items(result, "env", _variable))


def _single_pod(spec: Json) -> Json:
    """Return the spec of a Pod with defaults; other than in pod templates, requests default to limits."""
    result = _pod(spec)
    for field in _CONTAINERS:
        result = _map_items(result, field, _with_requests)
    return result


def _with_requests(container: Json) -> Json:
    limits, requests = (object_at(container, "resources", name) for name in ("limits", "requests"))
    if not limits:
        return container
    resources = {**object_at(container, "resources"), "requests": {**limits, **requests}}
    return {**container, "resources": resources}


def _probe(probe: Json) -> Json:
    result = {**_PROBE, **probe}
    http_get = as_object(probe.get("httpGet"))
    if http_get is not None:
        result["httpGet"] = {"path": "/", "scheme": "HTTP", **http_get}
    return result


def _variable(value: Json) -> Json:
    source = as_object(value.get("valueFrom"))
    reference = as_object((source or {}).get("fieldRef"))
    if source is None or reference is None:
        return value
    return {**value, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **reference}}}


def _volume(value: Json) -> Json:
    result = dict(value)
    if not value.keys() - {"name"}:
        result["emptyDir"] = {}
    for name, default in (
        ("configMap", {"defaultMode": _MODE}),
        ("secret", {"defaultMode": _MODE}),
        ("projected", {"defaultMode": _MODE}),
        ("downwardAPI", {"defaultMode": _MODE}),
        ("hostPath", {"type": ""}),
    ):
        fields = as_object(value.get(name))
        if fields is not None:
            result[name] = {**default, **fields}
    return result


def _pull_policy(image: object) -> str:
    """Return the default pull policy: Always for images without a tag or with ``latest``."""
    text = image if isinstance(image, str) else ""
    if "@" in text or text != text.strip():
        return "IfNotPresent"
    _path, colon, tag = text.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == _LATEST else "IfNotPresent"


def _map_items(value: Json, name: str, fill: Callable[[Json], Json]) -> Json:
    """Return the object; if the field ``name`` is a list, with the defaults of its items."""
    items = as_list(value.get(name))
    if items is None:
        return value
    return {**value, name: [item if (fields := as_object(item)) is None else fill(fields) for item in items]}


_OF_OBJECTS: Final[Mapping[tuple[str, str], Callable[[Json], Json]]] = {
    ("v1", "Endpoints"): _endpoints,
    ("v1", "PodTemplate"): _with_template,
    ("v1", "Secret"): lambda value: {"type": "Opaque", **value},
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _binding,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): lambda value: {
        "preemptionPolicy": "PreemptLowerPriority",
        **value,
    },
    ("storage.k8s.io/v1", "StorageClass"): lambda value: {
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        **value,
    },
}
"""For kinds with defaulted fields outside ``spec``: the function that sets the defaults of the whole object."""

_OF_SPECS: Final[Mapping[tuple[str, str], Callable[[Json], Json]]] = {
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("batch/v1", "Job"): _job,
    ("batch/v1", "CronJob"): _cron_job,
    ("v1", "Pod"): _single_pod,
    ("v1", "Service"): _service,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "PersistentVolume"): _volume_of_cluster,
    ("v1", "LimitRange"): _limit_range,
    ("v1", "ReplicationController"): _replication_controller,
    ("networking.k8s.io/v1", "NetworkPolicy"): _network_policy,
    ("storage.k8s.io/v1", "CSIDriver"): _driver,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): lambda spec: {"minReplicas": 1, **spec},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler,
}
