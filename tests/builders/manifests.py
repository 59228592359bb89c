"""Kubernetes and Karmada manifests as users write them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from events.json_values import Json

Kind = tuple[str, str]
"""API version and kind."""

DEPLOYMENT: Final = ("apps/v1", "Deployment")
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
JOB: Final = ("batch/v1", "Job")
POD: Final = ("v1", "Pod")
CONFIG_MAP: Final = ("v1", "ConfigMap")
SECRET: Final = ("v1", "Secret")
NAMESPACE: Final = ("v1", "Namespace")
CLUSTER_ROLE: Final = ("rbac.authorization.k8s.io/v1", "ClusterRole")
PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
FLINK: Final = ("flink.example.io/v1", "FlinkJob")
REBALANCERS: Final = "apps.karmada.io/v1alpha1"
POLICIES: Final = "policy.karmada.io/v1alpha1"

DUPLICATED: Final[Json] = {"replicaSchedulingType": "Duplicated"}
EVEN: Final[Json] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
AGGREGATED: Final[Json] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DYNAMIC: Final[Json] = {**EVEN, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}


def raw(value: object) -> msgspec.Raw:
    """Return the value as the raw JSON that events carry."""
    return msgspec.Raw(msgspec.json.encode(value))


def manifest(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    metadata: Mapping[str, object] | None = None,
    **fields: object,
) -> Json:
    """An object of any kind; ``metadata`` are further fields of its metadata, ``fields`` those at its root."""
    own: Json = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**own, **(metadata or {})}, **fields}


def pod_template(
    name: str, *, image: str = "nginx", requests: Mapping[str, str] | None = None, **spec: object
) -> Json:
    """A pod template with one container and the label ``app``; ``spec`` are further fields of its spec."""
    container: Json = {"name": "main", "image": image}
    if requests:
        container["resources"] = {"requests": requests}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def deployment(
    name: str,
    replicas: int = 1,
    namespace: str = "",
    *,
    metadata: Mapping[str, object] | None = None,
    image: str = "nginx",
    requests: Mapping[str, str] | None = None,
    **pod: object,
) -> Json:
    """A Deployment; ``pod`` are further fields of its pod spec."""
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": pod_template(name, image=image, requests=requests, **pod),
    }
    return manifest(*DEPLOYMENT, name, namespace, metadata=metadata, spec=spec)


def config_map(name: str, namespace: str = "", /, **data: str) -> Json:
    return manifest(*CONFIG_MAP, name, namespace, data=data)


def priority_class(name: str, value: int, **fields: object) -> Json:
    return manifest(*PRIORITY_CLASS, name) | {"value": value, **fields}


def cluster(name: str, **spec: object) -> Json:
    """A cluster that an agent serves."""
    return manifest("cluster.karmada.io/v1alpha1", "Cluster", name, spec={"syncMode": "Pull", **spec})


def selector(name: str = "", kind: Kind = DEPLOYMENT, **fields: object) -> Json:
    """A resource selector, or another reference, for all objects of a kind or for one by name."""
    reference: Json = {"apiVersion": kind[0], "kind": kind[1], **fields}
    return reference | {"name": name} if name else reference


def selector_of(value: Json) -> Json:
    """Return the resource selector of exactly this object."""
    return selector(value["metadata"]["name"], (value["apiVersion"], value["kind"]))  # type: ignore[index,arg-type]


def on(*names: str, scheduling: Json | None = None, **placement: object) -> Json:
    """A placement on these clusters."""
    placed: Json = {"clusterAffinity": {"clusterNames": list(names)}, **placement}
    return placed | {"replicaScheduling": scheduling} if scheduling else placed


def policy(
    name: str,
    placement: Json | None = None,
    *selectors: Json,
    namespace: str = "",
    annotations: Json | None = None,
    **spec: object,
) -> Json:
    """A PropagationPolicy; by default it selects all Deployments."""
    return manifest(
        POLICIES,
        "PropagationPolicy",
        name,
        namespace,
        metadata={"annotations": annotations} if annotations else None,
        spec={"resourceSelectors": list(selectors) or [selector()], "placement": placement or {}, **spec},
    )


def cluster_policy(
    name: str,
    placement: Json | None = None,
    *selectors: Json,
    annotations: Json | None = None,
    **spec: object,
) -> Json:
    """A ClusterPropagationPolicy; by default it selects all Deployments."""
    manifest = policy(name, placement, *selectors, namespace="", annotations=annotations, **spec)
    return manifest | {"kind": "ClusterPropagationPolicy"}


def override_policy(name: str, *rules: Mapping[str, object], namespace: str = "", **spec: object) -> Json:
    """An OverridePolicy; without ``resourceSelectors`` it selects all objects."""
    if rules:
        spec["overrideRules"] = list(rules)
    return manifest(POLICIES, "OverridePolicy", name, namespace, spec=spec)


def cluster_override_policy(name: str, *rules: Mapping[str, object], **spec: object) -> Json:
    return override_policy(name, *rules, namespace="", **spec) | {"kind": "ClusterOverridePolicy"}


def images(tag: str, **target: object) -> Json:
    """An override rule that replaces the image tag, restricted to clusters by ``target``."""
    rule: Json = {
        "overriders": {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": tag}]}
    }
    return rule | {"targetCluster": target} if target else rule


def taint_policy(
    name: str,
    effect: str = "NoExecute",
    *statuses: str,
    on: tuple[str, ...] = (),
    condition: str = "Ready",
    **spec: object,
) -> Json:
    """A ClusterTaintPolicy that taints clusters with these statuses (default: not ready) and untaints ready ones."""
    matched: Json = {"conditionType": condition, "operator": "In"}
    rules: Json = {
        "addOnConditions": [{**matched, "statusValues": list(statuses) or ["False", "Unknown"]}],
        "removeOnConditions": [{**matched, "statusValues": ["True"]}],
        "taints": [{"key": "not-ready", "effect": effect}],
        **({"targetClusters": {"clusterNames": list(on)}} if on else {}),
        **spec,
    }
    return manifest(POLICIES, "ClusterTaintPolicy", name, spec=rules)


def rebalancer(
    name: str, *workloads: Json, metadata: Mapping[str, object] | None = None, ttl_s: int | None = None
) -> Json:
    """A WorkloadRebalancer for these workloads, in this order."""
    spec: Json = {"workloads": list(workloads)}
    if ttl_s is not None:
        spec["ttlSecondsAfterFinished"] = ttl_s
    return manifest(REBALANCERS, "WorkloadRebalancer", name, metadata=metadata, spec=spec)


def interpreter(replicas_path: str = "", requests_path: str = "", /, **fields: object) -> Json:
    """A ReplicaInterpreter for FlinkJobs; ``fields`` are further fields of its spec."""
    spec: Json = {"target": selector(kind=FLINK), **fields}
    if replicas_path:
        spec["replicasPath"] = replicas_path
    if requests_path:
        spec["requestsPath"] = requests_path
    return manifest("config.reballast.io/v1alpha1", "ReplicaInterpreter", "flink", spec=spec)


def definition(plural: str, kind: str, group: str = "example.io", schema: Json | None = None) -> Json:
    """A CustomResourceDefinition of one namespaced version v1; without a schema it allows all fields."""
    allowed: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or allowed},
    }
    spec: Json = {
        "group": group,
        "names": {"plural": plural, "kind": kind},
        "scope": "Namespaced",
        "versions": [version],
    }
    return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec=spec)
