"""Input events made of the manifests, in the namespace ``default``; clusters and their reports."""

import json
from collections.abc import Mapping
from typing import Final

import msgspec

from events import clusters, imported_placements, keys, policies, shapes, specs
from events.json_values import Json
from tests.builders import manifests
from tests.builders.manifests import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    DEPLOYMENT,
    FLINK,
    JOB,
    POD,
    POLICIES,
    PRIORITY_CLASS,
    REPLICA_SET,
    SECRET,
    STATEFUL_SET,
    Kind,
    raw,
)

_SERVED: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, JOB, CONFIG_MAP, SECRET, CLUSTER_ROLE, FLINK, POD)
_CLUSTER_SCOPED: Final = frozenset({CLUSTER_ROLE, PRIORITY_CLASS})


def key(name: str, kind: Kind = DEPLOYMENT) -> str:
    """Return the binding key of a template."""
    return keys.binding_key(kind[1], _namespace(kind), name)


def ref(name: str, kind: Kind = DEPLOYMENT) -> shapes.WorkloadRef:
    """Return the reference of a template."""
    return shapes.WorkloadRef(api_version=kind[0], kind=kind[1], name=name, namespace=_namespace(kind))


def joined(name: str, labels: dict[str, str] | None = None, *, lacks: str = "") -> clusters.ClusterJoined:
    """A cluster that joins and serves all kinds except ``lacks``."""
    apis = tuple(
        clusters.ApiKind(group_version=version, kinds=(kind,)) for version, kind in _SERVED if kind != lacks
    )
    return clusters.ClusterJoined(name=name, labels=labels or {}, apis=apis)


def capacity(name: str, cpu: int = 10, pods: int = 100) -> clusters.CapacityReported:
    """The reported capacity of a cluster."""
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
    return clusters.CapacityReported(name=name, allocatable=allocatable)


def template(
    name: str,
    kind: Kind = DEPLOYMENT,
    labels: dict[str, str] | None = None,
    fields: Json | None = None,
) -> specs.TemplateApplied:
    """A template of a kind, with extra fields at its root."""
    metadata: Json = {"labels": labels} if labels else {}
    return applied(manifests.manifest(*kind, name, _namespace(kind), metadata=metadata) | (fields or {}))


def applied(manifest: Json, expects: int | None = None) -> specs.TemplateApplied:
    return specs.TemplateApplied(manifest=raw(manifest), expects=expects)


def deployment(
    name: str,
    replicas: int = 1,
    cpu: str = "1",
    labels: dict[str, str] | None = None,
    expects: int | None = None,
    **pod: object,
) -> specs.TemplateApplied:
    """A Deployment with a CPU request per replica; ``pod`` are further fields of its pod spec."""
    metadata: Json = {"labels": labels} if labels else {}
    requests = {"cpu": cpu}
    value = manifests.deployment(
        name, replicas, "default", metadata=metadata, image="nginx", requests=requests, **pod
    )
    return applied(value, expects)


def referring(name: str, *needed: str, replicas: int = 1, **fields: object) -> specs.TemplateApplied:
    """A Deployment that mounts these objects, each written ``ConfigMap/name`` or ``Secret/name``."""
    volumes: list[Json] = []
    for needed_object in needed:
        kind, _, called = needed_object.partition("/")
        source = (
            {"configMap": {"name": called}} if kind == "ConfigMap" else {"secret": {"secretName": called}}
        )
        volumes.append({"name": f"v{len(volumes)}", **source})
    return applied(manifests.deployment(name, replicas, "default", volumes=volumes) | fields)


def deleted(name: str, kind: Kind = DEPLOYMENT) -> specs.TemplateDeleted:
    return specs.TemplateDeleted(template=ref(name, kind))


def policy(
    name: str,
    placement: Json | None = None,
    *selectors: Json,
    namespace: str = "default",
    annotations: Json | None = None,
    **spec: object,
) -> policies.PolicyApplied:
    """A PropagationPolicy, or a ClusterPropagationPolicy if ``namespace`` is empty; default: all Deployments."""
    manifest = (
        manifests.policy(name, placement, *selectors, namespace=namespace, annotations=annotations, **spec)
        if namespace
        else manifests.cluster_policy(name, placement, *selectors, annotations=annotations, **spec)
    )
    return policies.PolicyApplied(manifest=raw(manifest))


def policy_deleted(name: str, namespace: str = "default") -> policies.PolicyDeleted:
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    return policies.PolicyDeleted(policy=shapes.PolicyRef(kind=kind, name=name, namespace=namespace))


def priority_class(name: str, value: int, **fields: object) -> specs.TemplateApplied:
    return applied(manifests.priority_class(name, value, **fields))


def interpreter(
    replicas_path: str = "", requests_path: str = "", /, **fields: object
) -> policies.InterpreterApplied:
    """A ReplicaInterpreter for FlinkJobs; ``fields`` are further fields of its spec."""
    return policies.InterpreterApplied(
        manifest=raw(manifests.interpreter(replicas_path, requests_path, **fields))
    )


def tainted(name: str, effect: str, taint: str = "maintenance", value: str = "") -> clusters.ClusterTainted:
    return clusters.ClusterTainted(name=name, taint=clusters.Taint(key=taint, effect=effect, value=value))


def untainted(name: str, taint: str = "maintenance") -> clusters.ClusterUntainted:
    return clusters.ClusterUntainted(name=name, key=taint)


def health_reported(name: str, *, ready: bool = True, grace_s: int = 0) -> clusters.ClusterHealthChanged:
    """A health report of a cluster; with ``grace_s`` it promises another report within that time."""
    return clusters.ClusterHealthChanged(name=name, ready=ready, grace_seconds=grace_s)


def conditions_reported(name: str, **statuses: str) -> clusters.ClusterConditionsReported:
    """Conditions that a client reports of a cluster: status by type."""
    reported = (clusters.ClusterCondition(type=kind, status=status) for kind, status in statuses.items())
    return clusters.ClusterConditionsReported(name=name, conditions=tuple(reported))


def configuration(manifest: Json) -> policies.ConfigurationApplied:
    return policies.ConfigurationApplied(manifest=raw(manifest))


def quota(name: str, cpu: str = "8", **assigned: str) -> policies.ConfigurationApplied:
    """A FederatedResourceQuota; ``assigned`` are the pods that it assigns, by cluster."""
    assignments = [{"clusterName": cluster, "hard": {"pods": pods}} for cluster, pods in assigned.items()]
    spec: Json = {"overall": {"cpu": cpu}, **({"staticAssignments": assignments} if assigned else {})}
    return configuration(manifests.manifest(POLICIES, "FederatedResourceQuota", name, "default", spec=spec))


def taint_policy(
    name: str,
    effect: str = "NoExecute",
    *statuses: str,
    on: tuple[str, ...] = (),
    condition: str = "Ready",
    **spec: object,
) -> policies.ConfigurationApplied:
    """A ClusterTaintPolicy that taints clusters with these statuses (default: not ready) and untaints ready ones."""
    return configuration(manifests.taint_policy(name, effect, *statuses, on=on, condition=condition, **spec))


def override(
    name: str,
    *rules: Mapping[str, object],
    namespace: str = "default",
    selectors: list[Json] | None = None,
    spec: Json | None = None,
) -> policies.ConfigurationApplied:
    """An OverridePolicy, or a ClusterOverridePolicy if the namespace is empty; selects everything by default."""
    fields = dict(spec or {})
    if selectors is not None:
        fields["resourceSelectors"] = selectors
    if not namespace:
        return configuration(manifests.cluster_override_policy(name, *rules, **fields))
    return configuration(manifests.override_policy(name, *rules, namespace=namespace, **fields))


def override_deleted(name: str, namespace: str = "default") -> policies.ConfigurationDeleted:
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    return policies.ConfigurationDeleted(
        object=shapes.WorkloadRef(api_version=POLICIES, kind=kind, name=name, namespace=namespace)
    )


def rebalancer(
    name: str, *workloads: shapes.WorkloadRef, ttl_s: int | None = None
) -> specs.RebalancerApplied:
    """A WorkloadRebalancer for these workloads, in this order."""
    named: list[Json] = [msgspec.to_builtins(workload) for workload in workloads]
    return specs.RebalancerApplied(manifest=raw(manifests.rebalancer(name, *named, ttl_s=ttl_s)))


def _namespace(kind: Kind) -> str:
    return "" if kind in _CLUSTER_SCOPED else "default"


def imported(
    replicas: int, claimed_by: str = "", placement: Json | None = None, /, **clusters: int
) -> specs.TemplateApplied:
    """A Deployment that runs in these clusters already, and is claimed by a policy of its namespace."""
    claim = {"policy": {"kind": "PropagationPolicy", "namespace": "default", "name": claimed_by}}
    older = {"placement": json.dumps(placement)} if placement else {}
    text = json.dumps({"clusters": clusters, **(claim if claimed_by else {}), **older})
    metadata = {"annotations": {imported_placements.ANNOTATION: text}}
    return applied(
        manifests.deployment("web", replicas, "default", metadata=metadata, requests={"cpu": "1"}), None
    )
