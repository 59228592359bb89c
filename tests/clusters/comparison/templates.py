"""Random templates of the kinds that policies propagate."""

import random
from collections.abc import Callable
from typing import Final

from engine.domain import namespaces
from events.json_values import Json, object_at
from tests.builders.manifests import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    POD,
    POLICIES,
    PRIORITY_CLASS,
    REPLICA_SET,
    SECRET,
    STATEFUL_SET,
    Kind,
    manifest,
)
from tests.clusters.comparison import custom_kinds
from tests.clusters.comparison.custom_kinds import DEFINITION
from tests.clusters.comparison.pods import pod_template

_SELECTOR: Final[Json] = {"matchLabels": {"pod": "p"}}
_RBAC: Final = CLUSTER_ROLE[0]
_PROTECTED: Final = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
_READING: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_DATA: Final = {"a": "1", "b.yaml": "x: 1\nz: [1, 2]\n", "j.json": '{"a":{"b":1}}'}
QUOTA: Final = (POLICIES, "FederatedResourceQuota")
FREE_LABEL: Final = "team"
"""A label that no selector reads, so that edits can change it."""


def labels(rng: random.Random) -> dict[str, str]:
    """Return labels that the selectors of ``policies`` may or may not match."""
    drawn = {"app": rng.choice("xy"), "track": rng.choice("st"), FREE_LABEL: "q"}
    kept = {name: text for name, text in drawn.items() if rng.random() < 0.7}
    return kept | _PROTECTED if rng.random() < 0.05 else kept


def is_protected(value: Json) -> bool:
    """Whether an object may not be deleted."""
    return object_at(value, "metadata", "labels").items() >= _PROTECTED.items()


def overall(rng: random.Random) -> Json:
    """Return the limits of a quota over all clusters."""
    limits: tuple[Json, ...] = (
        {"cpu": "3"},
        {"cpu": "10", "memory": "4Gi"},
        {"memory": "1Gi"},
        {"requests.cpu": "2"},
    )
    return rng.choice(limits)


def _replicated(counts: tuple[int, ...], **fields: object) -> Callable[[random.Random], Json]:
    """Return what draws the fields of a kind with replicas, which has further fields in its spec."""

    def draw(rng: random.Random) -> Json:
        spec: Json = {"selector": _SELECTOR, "template": pod_template(rng), **fields}
        return {"spec": {**spec, "replicas": rng.choice(counts)} if counts else spec}

    return draw


def _job(rng: random.Random) -> Json:
    template = pod_template(rng)
    spec: Json = {"template": {**template, "spec": {**object_at(template, "spec"), "restartPolicy": "Never"}}}
    if rng.random() < 0.8:
        spec["parallelism"] = rng.choice((1, 2, 5))
    if rng.random() < 0.8:
        spec["completions"] = rng.choice((1, 3, 5, 9))
    if rng.random() < 0.2:
        spec["ttlSecondsAfterFinished"] = 9000
    return {"spec": spec}


def _cron_job(rng: random.Random) -> Json:
    return {"spec": {"schedule": "0 3 * * *", "jobTemplate": _job(rng), "suspend": rng.random() < 0.3}}


def _ingress(rng: random.Random) -> Json:
    spec: Json = {"defaultBackend": {"service": {"name": "service0", "port": {"number": 80}}}}
    if rng.random() < 0.5:
        spec["tls"] = [{"hosts": ["a.example"], "secretName": "secret0"}]
    return {"spec": spec}


def _granted(kind: str) -> Json:
    """Return the fields of a binding that grants a role to an account."""
    account = {"kind": "ServiceAccount", "name": "serviceaccount0", "namespace": "default"}
    return {
        "subjects": [account],
        "roleRef": {"apiGroup": _RBAC.partition("/")[0], "kind": kind, "name": "role0"},
    }


def _volume(_rng: random.Random) -> Json:
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/a"},
    }
    return {"spec": spec}


def _limit_range(_rng: random.Random) -> Json:
    return {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]}}


def _service(rng: random.Random) -> Json:
    sorts: tuple[Json, ...] = ({}, {"type": "NodePort"}, {"type": "LoadBalancer"}, {"clusterIP": "None"})
    ports = [{"name": "a", "port": 80, "targetPort": 8080}]
    return {"spec": {"selector": {"pod": "p"}, "ports": ports, **rng.choice(sorts)}}


def _autoscaler(rng: random.Random) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": rng.choice(("deployment0", "none"))}
    usage = {"type": "Utilization", "averageUtilization": 60}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": usage}}
    return {"spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": [metric]}}


_ASSIGNED: Final[tuple[tuple[Json, ...], ...]] = (
    (),
    ({"clusterName": "p1", "hard": {"cpu": "1"}},),
    ({"clusterName": "p1", "hard": {"cpu": "2"}}, {"clusterName": "p4", "hard": {"cpu": "500m"}}),
    ({"clusterName": "p2", "hard": {"memory": "1Gi"}}, {"clusterName": "nowhere", "hard": {"memory": "1"}}),
)


def _quota(rng: random.Random) -> Json:
    return {"spec": {"overall": overall(rng), "staticAssignments": rng.choice(_ASSIGNED)}}


def _custom(draw: Callable[[random.Random], Json]) -> Callable[[random.Random], Json]:
    return lambda rng: {"spec": draw(rng)}


_CLUSTER_ROLE_BINDING: Final = (_RBAC, "ClusterRoleBinding")
_ACCOUNT: Final = ("v1", "ServiceAccount")
_PERSISTENT_CLAIM: Final = ("v1", "PersistentVolumeClaim")
_VOLUME: Final = ("v1", "PersistentVolume")
_CLAIM: Final[Json] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_DRAWN: Final[dict[Kind, Callable[[random.Random], Json]]] = {
    DEPLOYMENT: _replicated((0, 1, 2, 3, 5, 7, 10)),
    STATEFUL_SET: _replicated((1, 2, 5), serviceName="h"),
    REPLICA_SET: _replicated((1, 4)),
    ("apps/v1", "DaemonSet"): _replicated(()),
    JOB: _job,
    POD: lambda rng: {"spec": pod_template(rng)["spec"]},
    CONFIG_MAP: lambda _: {"data": _DATA},
    SECRET: lambda _: {"data": {"k": "eA=="}, "type": "Opaque"},
    _ACCOUNT: lambda _: {},
    ("v1", "Service"): _service,
    _PERSISTENT_CLAIM: lambda _: {"spec": _CLAIM},
    ("policy/v1", "PodDisruptionBudget"): lambda _: {"spec": {"selector": _SELECTOR, "minAvailable": 1}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler,
    (_RBAC, "Role"): lambda _: {"rules": _READING},
    CLUSTER_ROLE: lambda _: {"rules": _READING},
    (_RBAC, "RoleBinding"): lambda _: _granted("Role"),
    _CLUSTER_ROLE_BINDING: lambda _: _granted("ClusterRole"),
    ("batch/v1", "CronJob"): _cron_job,
    ("networking.k8s.io/v1", "Ingress"): _ingress,
    ("networking.k8s.io/v1", "NetworkPolicy"): lambda _: {"spec": {"podSelector": _SELECTOR}},
    ("v1", "LimitRange"): _limit_range,
    ("v1", "ResourceQuota"): lambda _: {"spec": {"hard": {"requests.example.com/gpu": "9"}}},
    _VOLUME: _volume,
    PRIORITY_CLASS: lambda rng: {"value": rng.choice((1, 100))},
    QUOTA: _quota,
    DEFINITION: lambda _: {},
    **{kind: _custom(draw) for kind, draw in custom_kinds.SPECS.items()},
}
_CLUSTER_SCOPED: Final = (CLUSTER_ROLE, _CLUSTER_ROLE_BINDING, PRIORITY_CLASS, _VOLUME, DEFINITION)
_FREE_NAMES: Final = (CLUSTER_ROLE, _CLUSTER_ROLE_BINDING, (_RBAC, "Role"), (_RBAC, "RoleBinding"))
_LONG_NAMES: Final = (DEPLOYMENT, CONFIG_MAP, SECRET)
_DEPENDENCIES: Final = (CONFIG_MAP, SECRET, _ACCOUNT, _PERSISTENT_CLAIM)
_FREQUENT: Final = (*[DEPLOYMENT] * 8, QUOTA, QUOTA, *_DEPENDENCIES)
KINDS: Final = tuple(_DRAWN)


def template(rng: random.Random, namespace: str, number: int) -> Json:
    """Return a template, most often a Deployment; its name ends with 0 or ``number``."""
    kind = rng.choice(_FREQUENT) if rng.random() < 0.5 else rng.choice(KINDS)
    metadata: Json = {"labels": labels(rng)}
    if rng.random() < 0.3:
        metadata["annotations"] = {"note": "n"}
    if rng.random() < 0.1:
        metadata["annotations"] = {"work.karmada.io/conflict-resolution": rng.choice(("overwrite", "abort"))}
    name = f"{kind[1].lower()}{rng.choice((0, number))}"
    if kind in _FREE_NAMES and rng.random() < 0.3:
        name = f"{name}:reader"
    if kind in _LONG_NAMES and rng.random() < 0.15:
        name = f"{name}-{'long.' * 40}x"
    if kind in _CLUSTER_SCOPED:
        name, namespace = f"{namespace}-{name}", ""
    if kind == DEFINITION:
        defined = custom_kinds.definition("compared.example/v1", name)
        return {**defined, "metadata": {**object_at(defined, "metadata"), **metadata}}
    return manifest(*kind, name, namespace, metadata=metadata, **_DRAWN[kind](rng))


def namespace(rng: random.Random, name: str) -> Json:
    """Return a namespace after an edit of its labels."""
    labels = {FREE_LABEL: rng.choice("qz")} | ({namespaces.SKIPPED: "true"} if rng.random() < 0.2 else {})
    return manifest("v1", "Namespace", name, metadata={"labels": labels})


def edited(rng: random.Random, value: Json) -> Json:
    """Return a template after an edit of its annotations, its replicas, its pod template or its limits."""
    kind = (str(value["apiVersion"]), str(value["kind"]))
    spec = object_at(value, "spec")
    if kind == QUOTA:
        if rng.random() < 0.5:
            return {**value, "spec": {**spec, "overall": overall(rng)}}
        return {**value, "spec": {**spec, "staticAssignments": rng.choice(_ASSIGNED)}}
    if "replicas" in spec and rng.random() < 0.5:
        return {**value, "spec": {**spec, "replicas": rng.choice((0, 1, 2, 4, 6, 9))}}
    if "selector" in spec and "template" in spec and rng.random() < 0.4:
        return {**value, "spec": {**spec, "template": pod_template(rng)}}
    metadata = object_at(value, "metadata")
    if rng.random() < 0.4:
        # No other label: if its policy no longer selects it, Karmada's Works keep up with it only by accident.
        old = object_at(metadata, "labels")
        others = {name: text for name, text in old.items() if name != FREE_LABEL}
        changed = {FREE_LABEL: rng.choice("qz")} if rng.random() < 0.7 else {}
        return {**value, "metadata": {**metadata, "labels": {**others, **changed}}}
    return {**value, "metadata": {**metadata, "annotations": {"edit": str(rng.random())}}}
