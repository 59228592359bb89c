"""Builders of input events for examples: templates, policies, clusters and their reports."""

from typing import Final

import msgspec

from events import clusters, keys, policies, shapes, specs
from events.json_values import Json

DEPLOYMENT: Final = ("apps/v1", "Deployment")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
JOB: Final = ("batch/v1", "Job")
POD: Final = ("v1", "Pod")
CONFIG_MAP: Final = ("v1", "ConfigMap")
SECRET: Final = ("v1", "Secret")
CLUSTER_ROLE: Final = ("rbac.authorization.k8s.io/v1", "ClusterRole")
FLINK: Final = ("flink.example.io/v1", "FlinkJob")
KINDS: Final = (DEPLOYMENT, STATEFUL_SET, JOB, CONFIG_MAP, SECRET, CLUSTER_ROLE, FLINK)
PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
_CLUSTER_SCOPED: Final = frozenset({CLUSTER_ROLE, PRIORITY_CLASS})

DUPLICATED: Final[Json] = {"replicaSchedulingType": "Duplicated"}
EVEN: Final[Json] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
AGGREGATED: Final[Json] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DYNAMIC: Final[Json] = {**EVEN, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}


def raw(value: object) -> msgspec.Raw:
    """Return the value as the raw JSON that events carry."""
    return msgspec.Raw(msgspec.json.encode(value))


def key(name: str, kind: tuple[str, str] = DEPLOYMENT) -> str:
    """Return the binding key of a template."""
    return keys.binding_key(kind[1], _namespace(kind), name)


def ref(name: str, kind: tuple[str, str] = DEPLOYMENT) -> shapes.WorkloadRef:
    """Return the reference of a template."""
    return shapes.WorkloadRef(api_version=kind[0], kind=kind[1], name=name, namespace=_namespace(kind))


def joined(name: str, labels: dict[str, str] | None = None, *, lacks: str = "") -> clusters.ClusterJoined:
    """A cluster that joins and serves all kinds except ``lacks``."""
    apis = tuple(
        clusters.ApiKind(group_version=version, kinds=(kind,))
        for version, kind in (*KINDS, POD)
        if kind != lacks
    )
    return clusters.ClusterJoined(name=name, labels=labels or {}, apis=apis)


def room(name: str, cpu: int = 10, pods: int = 100) -> clusters.CapacityReported:
    """The reported capacity of a cluster."""
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
    return clusters.CapacityReported(name=name, allocatable=allocatable)


def template(
    name: str,
    kind: tuple[str, str] = DEPLOYMENT,
    labels: dict[str, str] | None = None,
    fields: Json | None = None,
) -> specs.TemplateApplied:
    """A template of a kind, with extra fields at its root."""
    metadata: Json = {"name": name, "labels": labels or {}}
    if _namespace(kind):
        metadata["namespace"] = _namespace(kind)
    manifest = {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **(fields or {})}
    return specs.TemplateApplied(manifest=raw(manifest))


def deployment(
    name: str, replicas: int = 1, cpu: str = "1", labels: dict[str, str] | None = None, **fields: object
) -> specs.TemplateApplied:
    """A Deployment with a CPU request per replica; ``fields`` are added to its pod spec."""
    containers: list[Json] = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]
    return template(
        name, labels=labels, fields={"spec": {"replicas": replicas, "template": pod(containers, **fields)}}
    )


def referring(name: str, *needed: str, replicas: int = 1, **fields: object) -> specs.TemplateApplied:
    """A Deployment that mounts these objects, each written ``ConfigMap/name`` or ``Secret/name``."""
    volumes: list[Json] = []
    for each in needed:
        kind, _, called = each.partition("/")
        source = (
            {"configMap": {"name": called}} if kind == "ConfigMap" else {"secret": {"secretName": called}}
        )
        volumes.append({"name": f"v{len(volumes)}", **source})
    spec = {"replicas": replicas, "template": pod([{"name": "main", "image": "nginx"}], volumes=volumes)}
    return template(name, fields={"spec": spec, **fields})


def pod(containers: list[Json], **fields: object) -> Json:
    return {"spec": {"containers": containers, **fields}}


def deleted(name: str, kind: tuple[str, str] = DEPLOYMENT) -> specs.TemplateDeleted:
    return specs.TemplateDeleted(template=ref(name, kind))


def selector(name: str = "", kind: tuple[str, str] = DEPLOYMENT, **fields: object) -> Json:
    """A resource selector for all objects of a kind, or for one by name."""
    found: Json = {"apiVersion": kind[0], "kind": kind[1], **fields}
    return found | {"name": name} if name else found


def policy(
    name: str,
    placement: Json | None = None,
    *selectors: Json,
    namespace: str = "default",
    annotations: Json | None = None,
    **spec: object,
) -> policies.PolicyApplied:
    """A PropagationPolicy, or a ClusterPropagationPolicy if ``namespace`` is empty; default: all Deployments."""
    metadata: Json = {"name": name, "annotations": annotations or {}}
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy" if namespace else "ClusterPropagationPolicy",
        "metadata": metadata | {"namespace": namespace} if namespace else metadata,
        "spec": {
            "resourceSelectors": list(selectors) or [selector()],
            "placement": placement or {},
            **spec,
        },
    }
    return policies.PolicyApplied(manifest=raw(manifest))


def policy_deleted(name: str, namespace: str = "default") -> policies.PolicyDeleted:
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    return policies.PolicyDeleted(policy=shapes.PolicyRef(kind=kind, name=name, namespace=namespace))


def on(*names: str, scheduling: Json | None = None, **placement: object) -> Json:
    """A placement on these clusters."""
    found: Json = {"clusterAffinity": {"clusterNames": list(names)}, **placement}
    return found | {"replicaScheduling": scheduling} if scheduling else found


def priority_class(name: str, value: int, **fields: object) -> specs.TemplateApplied:
    return template(name, PRIORITY_CLASS, fields={"value": value, **fields})


def interpreter(
    replicas_path: str = "", requests_path: str = "", said: Json | None = None
) -> policies.InterpreterApplied:
    """A ReplicaInterpreter for FlinkJobs; ``said`` are further fields of its spec."""
    spec: Json = {"target": {"apiVersion": FLINK[0], "kind": FLINK[1]}, **(said or {})}
    if replicas_path:
        spec["replicasPath"] = replicas_path
    if requests_path:
        spec["requestsPath"] = requests_path
    manifest = {
        "apiVersion": "config.reballast.io/v1alpha1",
        "kind": "ReplicaInterpreter",
        "metadata": {"name": "flink"},
        "spec": spec,
    }
    return policies.InterpreterApplied(manifest=raw(manifest))


def tainted(name: str, effect: str, taint: str = "maintenance", value: str = "") -> clusters.ClusterTainted:
    return clusters.ClusterTainted(name=name, taint=clusters.Taint(key=taint, effect=effect, value=value))


def untainted(name: str, taint: str = "maintenance") -> clusters.ClusterUntainted:
    return clusters.ClusterUntainted(name=name, key=taint)


def heard(name: str, *, ready: bool = True, grace_s: int = 0) -> clusters.ClusterHealthChanged:
    """A health report of a cluster; with ``grace_s`` it promises another report within that time."""
    return clusters.ClusterHealthChanged(name=name, ready=ready, grace_seconds=grace_s)


def taint_policy(
    name: str, effect: str = "NoExecute", *statuses: str, on: tuple[str, ...] = (), **spec: object
) -> policies.ConfigurationApplied:
    """A ClusterTaintPolicy that taints clusters with these statuses (default: not ready) and untaints ready ones."""
    condition: Json = {"conditionType": "Ready", "operator": "In"}
    said: Json = {
        "addOnConditions": [{**condition, "statusValues": list(statuses) or ["False", "Unknown"]}],
        "removeOnConditions": [{**condition, "statusValues": ["True"]}],
        "taints": [{"key": "not-ready", "effect": effect}],
        **({"targetClusters": {"clusterNames": list(on)}} if on else {}),
        **spec,
    }
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterTaintPolicy",
        "metadata": {"name": name},
        "spec": said,
    }
    return policies.ConfigurationApplied(manifest=raw(manifest))


def override(
    name: str,
    *rules: Json,
    namespace: str = "default",
    selectors: list[Json] | None = None,
    spec: Json | None = None,
) -> policies.ConfigurationApplied:
    """An OverridePolicy, or a ClusterOverridePolicy if the namespace is empty; selects everything by default."""
    said = dict(spec or {})
    if rules:
        said["overrideRules"] = list(rules)
    if selectors is not None:
        said["resourceSelectors"] = selectors
    manifest: Json = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy" if namespace else "ClusterOverridePolicy",
        "metadata": {"name": name, "namespace": namespace} if namespace else {"name": name},
        "spec": said,
    }
    return policies.ConfigurationApplied(manifest=raw(manifest))


def override_deleted(name: str, namespace: str = "default") -> policies.ConfigurationDeleted:
    gone = shapes.WorkloadRef(
        api_version="policy.karmada.io/v1alpha1",
        kind="OverridePolicy" if namespace else "ClusterOverridePolicy",
        name=name,
        namespace=namespace,
    )
    return policies.ConfigurationDeleted(object=gone)


def images(tag: str, **target: object) -> Json:
    """An override rule that replaces the image tag, restricted to clusters by ``target``."""
    rule: Json = {
        "overriders": {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": tag}]}
    }
    return rule | {"targetCluster": target} if target else rule


def rebalancer(
    name: str, *workloads: shapes.WorkloadRef, ttl_s: int | None = None
) -> specs.RebalancerApplied:
    """A WorkloadRebalancer for these workloads, in this order."""
    spec: Json = {"workloads": [msgspec.to_builtins(workload) for workload in workloads]}
    if ttl_s is not None:
        spec["ttlSecondsAfterFinished"] = ttl_s
    manifest = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": name},
        "spec": spec,
    }
    return specs.RebalancerApplied(manifest=raw(manifest))


def _namespace(kind: tuple[str, str]) -> str:
    return "" if kind in _CLUSTER_SCOPED else "default"
