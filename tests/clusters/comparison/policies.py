"""Random propagation and override policies that select the templates of a scenario, or none of them."""

import random
from collections.abc import Sequence
from typing import Final

from events.json_values import Json, object_at, objects_at
from tests.builders.manifests import AGGREGATED, DUPLICATED, DYNAMIC, EVEN, POLICIES, PRIORITY_CLASS, manifest
from tests.clusters.comparison import fleet, templates

_NAMES: Final = (*fleet.NAMES, "nowhere")
_LABELS: Final[tuple[Json, ...]] = (
    {"matchLabels": {"env": "a"}},
    {"matchLabels": {"env": "c"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "env", "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["a", "b"]}]},
)
_FIELDS: Final[tuple[Json, ...]] = (
    {"key": "provider", "operator": "In", "values": ["x"]},
    {"key": "provider", "operator": "NotIn", "values": ["x"]},
    {"key": "region", "operator": "In", "values": ["r1", "r2"]},
    {"key": "region", "operator": "NotIn", "values": ["r1", "r2"]},
    {"key": "zone", "operator": "In", "values": ["z1", "z3"]},
    {"key": "zone", "operator": "NotIn", "values": ["z3", "z4"]},
)
_TOLERATIONS: Final[tuple[Json, ...]] = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "value": "x", "operator": "Equal", "effect": "NoSchedule"},
    {"operator": "Exists"},
    {"key": "failed", "operator": "Exists"},
    {"key": "dedicated", "value": "y"},
    # Without tolerationSeconds, after which Karmada schedules and evicts a workload again and again.
    {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"},
)
_TEMPLATE_LABELS: Final[tuple[Json, ...]] = (
    {"matchLabels": {"app": "x"}},
    {"matchLabels": {"app": "y"}},
    {"matchExpressions": [{"key": "track", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
)
_PATCHES: Final[tuple[Json, ...]] = (
    {"operator": "add", "path": "/metadata/annotations", "value": {"k": "v"}},
    {"operator": "add", "path": "/metadata/labels/n~1e", "value": "x"},
    {"operator": "replace", "path": "/metadata/labels/team", "value": "r"},
    {"operator": "remove", "path": "/metadata/labels/team"},
    {"operator": "add", "path": "/spec/replicas", "value": 4},
    {"operator": "replace", "path": "/spec/replicas", "value": 2},
    {"operator": "add", "path": "/data/a", "value": "overridden"},
    {"operator": "remove", "path": "/data/a"},
    {"operator": "add", "path": "/spec/template/spec/hostNetwork", "value": True},
    {
        "operator": "add",
        "path": "/spec/template/spec/containers/0/env",
        "value": [{"name": "A", "value": "b"}],
    },
    {"operator": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "side", "image": "s"}},
    {"operator": "remove", "path": "/spec/template/spec/containers/0/resources"},
)
_FIELDS_IN_TEXTS: Final[tuple[Json, ...]] = (
    {"fieldPath": "/data/j.json", "json": [{"subPath": "/a/b", "operator": "replace", "value": 2}]},
    {"fieldPath": "/data/j.json", "json": [{"subPath": "/c", "operator": "add", "value": {"d": True}}]},
    {"fieldPath": "/data/b.yaml", "yaml": [{"subPath": "/x", "operator": "replace", "value": "two"}]},
    {"fieldPath": "/data/b.yaml", "yaml": [{"subPath": "/z/0", "operator": "remove"}]},
)
_PREDICATE: Final = {"path": "/spec/template/spec/containers/0/image"}
_SUSPENSIONS: Final[tuple[Json, ...]] = (
    {"dispatching": True},
    {"dispatchingOnClusters": {"clusterNames": ["p1", "p4"]}},
    {"dispatching": False},
)
_KEPT: Final[Json] = {"rules": [{"aliasLabelName": "kept", "jsonPath": "{.replicas}"}]}
_TOLERATED: Final[Json] = {"tolerationSeconds": 1}
_FAILOVERS: Final[tuple[Json, ...]] = (
    {"application": {"decisionConditions": _TOLERATED, "purgeMode": "Directly"}},
    {"application": {"decisionConditions": _TOLERATED, "purgeMode": "Gracefully"}},
    {"application": {"decisionConditions": _TOLERATED, "purgeMode": "Never"}},
    {"application": {"decisionConditions": _TOLERATED, "purgeMode": "Directly", "statePreservation": _KEPT}},
    {"cluster": {"purgeMode": "Directly"}},
    {"cluster": {"purgeMode": "Gracefully"}},
    {"cluster": {"purgeMode": "Directly", "statePreservation": _KEPT}},
    {"application": {"decisionConditions": _TOLERATED}, "cluster": {"purgeMode": "Directly"}},
)
_GROUPS: Final[tuple[Json, ...]] = (
    {"affinity": {"groupByLabelKey": "app"}},
    {"antiAffinity": {"groupByLabelKey": "app"}},
    {"antiAffinity": {"groupByLabelKey": "track"}},
)
PRIORITY_CLASSES: Final = tuple(
    manifest(*PRIORITY_CLASS, name, value=value, preemptionPolicy="Never")
    for name, value in (("first", 1000), ("later", -1000))
)
"""They exist before the scenarios. Without preemption, which only Reballast knows."""
_PRIORITIES: Final[tuple[Json, ...]] = tuple(
    {"priorityClassSource": "KubePriorityClass", "priorityClassName": name} for name in ("first", "later")
)
OPERATORS: Final = ("add", "remove", "replace")
OPTIONAL: Final = frozenset(
    {
        *("priority", "preemption", "propagateDeps", "conflictResolution", "preserveResourcesOnDeletion"),
        *("suspension", "schedulePriority", "failover", "activationPreference"),
    }
)
"""Fields of policies that edits remove; not ``dependentOverrides``, without which Karmada does not retry at once."""


def is_policy(value: Json) -> bool:
    """Whether an object is a policy of Karmada; a NetworkPolicy is a template."""
    return value["apiVersion"] == POLICIES and str(value["kind"]).endswith("Policy")


def affinity(rng: random.Random) -> Json:
    """Return a cluster affinity, by names, labels or fields, with or without excluded clusters."""
    chosen: Json = {}
    drawn = rng.random()
    if drawn < 0.3:
        chosen["clusterNames"] = rng.sample(_NAMES, rng.randint(1, 4))
    elif drawn < 0.55:
        chosen["labelSelector"] = rng.choice(_LABELS)
    elif drawn < 0.75:
        chosen["fieldSelector"] = {"matchExpressions": [rng.choice(_FIELDS)]}
    if rng.random() < 0.3:
        chosen["exclude"] = rng.sample(fleet.NAMES, rng.randint(1, 2))
    return chosen


def _spread(rng: random.Random) -> list[Json]:
    field = rng.choice(("cluster", "cluster", "region", "zone", "provider", "label"))
    if field == "label":
        return [{"spreadByLabel": "env", "minGroups": 1, "maxGroups": 2}]
    groups: Json = {"minGroups": rng.choice((0, 1, 2)), "maxGroups": rng.choice((0, 2, 3))}
    constraints: list[Json] = [{"spreadByField": field, **groups}]
    if field != "cluster" and rng.random() < 0.7:
        clusters: Json = {"minGroups": rng.choice((1, 2)), "maxGroups": rng.choice((2, 3, 4))}
        constraints.append({"spreadByField": "cluster", **clusters})
    return constraints


def _division(rng: random.Random) -> Json:
    weights = [
        {"targetCluster": affinity(rng) or {"clusterNames": ["p1"]}, "weight": rng.choice((1, 2, 3, 5))}
        for _ in range(rng.randint(1, 3))
    ]
    ways: tuple[Json, ...] = (
        DUPLICATED,
        {**EVEN, "weightPreference": {"staticWeightList": weights}},
        DYNAMIC,
        AGGREGATED,
        {"replicaSchedulingType": "Divided"},
        EVEN,
    )
    return rng.choice(ways)


def placement(rng: random.Random) -> Json:
    """Return a placement."""
    placed: Json = {}
    drawn = rng.random()
    if drawn < 0.6:
        placed["clusterAffinity"] = affinity(rng)
    elif drawn < 0.8:
        count = rng.randint(1, 3)
        placed["clusterAffinities"] = [
            {"affinityName": f"g{order}", **affinity(rng)} for order in range(count)
        ]
    if rng.random() < 0.25:
        placed["clusterTolerations"] = [rng.choice(_TOLERATIONS)]
    if rng.random() < 0.35:
        placed["spreadConstraints"] = _spread(rng)
    if rng.random() < 0.8:
        placed["replicaScheduling"] = _division(rng)
    if rng.random() < 0.12:
        placed["workloadAffinity"] = rng.choice(_GROUPS)
    return placed


def _selectors(rng: random.Random, candidates: Sequence[Json], namespace: str) -> list[Json]:
    """Return selectors of templates by name or labels; those of cluster policies also name the ``namespace``."""
    selectors: list[Json] = []
    for _ in range(rng.choice((1, 1, 2))):
        selected = (
            rng.choice(candidates)
            if candidates and rng.random() < 0.8
            else templates.template(rng, "other", 0)
        )
        metadata = object_at(selected, "metadata")
        selector: Json = {"apiVersion": selected["apiVersion"], "kind": selected["kind"]}
        is_cluster_scoped = "namespace" not in metadata
        if is_cluster_scoped or rng.random() < 0.4:
            selector["name"] = metadata["name"]
        elif rng.random() < 0.5:
            selector["labelSelector"] = rng.choice(_TEMPLATE_LABELS)
        if namespace and not is_cluster_scoped:
            selector["namespace"] = namespace
        selectors.append(selector)
    return selectors


def propagation(rng: random.Random, namespace: str, number: int, candidates: Sequence[Json]) -> Json:
    """Return a policy of the namespace, or one for it of all namespaces; ``candidates`` are templates to select."""
    is_cluster_policy = rng.random() < 0.2
    spec: Json = {"placement": placement(rng)}
    in_reach = (
        candidates
        if is_cluster_policy
        else [value for value in candidates if "namespace" in object_at(value, "metadata")]
    )
    spec["resourceSelectors"] = _selectors(rng, in_reach, namespace if is_cluster_policy else "")
    for field, share, values in (
        ("priority", 0.3, (-1, 1, 5)),
        ("preemption", 0.2, ("Always", "Always", "Never")),
        ("propagateDeps", 0.3, (True,)),
        ("conflictResolution", 0.15, ("Overwrite", "Overwrite", "Abort")),
        ("preserveResourcesOnDeletion", 0.1, (True,)),
        ("schedulerName", 0.06, ("other",)),
        ("suspension", 0.1, _SUSPENSIONS),
        ("schedulePriority", 0.08, _PRIORITIES),
        ("failover", 0.15, _FAILOVERS),
        ("activationPreference", 0.15, ("Lazy",)),
    ):
        if rng.random() < share:
            spec[field] = rng.choice(values)
    if rng.random() < 0.1:
        names = [f"{namespace}-o1" if is_cluster_policy else "o1", *(["o2"] if rng.random() < 0.3 else [])]
        spec["dependentOverrides"] = names
    if "application" in object_at(spec, "failover"):
        spec["propagateDeps"] = True  # Karmada requires it
    if is_cluster_policy:
        return manifest(POLICIES, "ClusterPropagationPolicy", f"{namespace}-p{number}", spec=spec)
    return manifest(POLICIES, "PropagationPolicy", f"p{number}", namespace, spec=spec)


def _overriders(rng: random.Random) -> Json:
    overriders: dict[str, list[Json]] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        operator = rng.choice(OPERATORS)
        match rng.choice(("image", "command", "args", "labels", "annotations", "plaintext", "field")):
            case "image":
                part: Json = {
                    "component": rng.choice(("Registry", "Repository", "Tag")),
                    "operator": operator,
                }
                value: Json = (
                    {} if operator == "remove" else {"value": rng.choice(("foo.io", "bar/baz", "v9"))}
                )
                predicate: Json = {"predicate": _PREDICATE} if rng.random() < 0.25 else {}
                overriders.setdefault("imageOverrider", []).append({**part, **value, **predicate})
            case "command" | "args" as kind:
                words = rng.choice((["-x"], ["sh", "q"], ["-z", "-k=2"]))
                change: Json = {
                    "containerName": rng.choice(("c", "d")),
                    "operator": rng.choice(OPERATORS[:2]),
                }
                overriders.setdefault(f"{kind}Overrider", []).append({**change, "value": words})
            case "labels" | "annotations" as kind:
                texts = rng.choice(({"app": "o"}, {"new": "l"}, {"note": "m", "team": "z"}))
                overriders.setdefault(f"{kind}Overrider", []).append({"operator": operator, "value": texts})
            case "field":
                overriders.setdefault("fieldOverrider", []).append(rng.choice(_FIELDS_IN_TEXTS))
            case _:
                overriders.setdefault("plaintext", []).append(rng.choice(_PATCHES))
    return dict(overriders)


def override(rng: random.Random, namespace: str, number: int, candidates: Sequence[Json]) -> Json:
    """Return an override policy of the namespace, or one for it of all namespaces."""
    is_cluster_policy = rng.random() < 0.3
    rules: list[Json] = []
    for _ in range(rng.choice((1, 1, 2))):
        target: Json = {"targetCluster": affinity(rng)} if rng.random() < 0.6 else {}
        rules.append({**target, "overriders": _overriders(rng)})
    spec: Json = {"overrideRules": rules}
    if is_cluster_policy:
        spec["resourceSelectors"] = _selectors(rng, candidates, namespace)
        return manifest(POLICIES, "ClusterOverridePolicy", f"{namespace}-o{number}", spec=spec)
    in_reach = [value for value in candidates if "namespace" in object_at(value, "metadata")]
    if rng.random() < 0.85:
        spec["resourceSelectors"] = _selectors(rng, in_reach, "")
    return manifest(POLICIES, "OverridePolicy", f"o{number}", namespace, spec=spec)


def edited(rng: random.Random, value: Json) -> Json:
    """Return a policy after an edit of its rules, its placement or another field."""
    spec = object_at(value, "spec")
    if "overrideRules" in spec:
        return {**value, "spec": {**spec, "overrideRules": [{"overriders": _overriders(rng)}]}}
    if rng.random() < 0.6:
        return {**value, "spec": {**spec, "placement": placement(rng)}}
    removable = sorted(OPTIONAL & spec.keys())
    if removable and rng.random() < 0.5:
        removed = rng.choice(removable)
        kept = {name: part for name, part in spec.items() if name != removed}
        if removed == "propagateDeps":
            kept.pop("failover", None)  # Karmada requires one for the other
        return {**value, "spec": kept}
    metadata = object_at(value, "metadata")
    namespace = "" if "namespace" in metadata else str(metadata["name"]).rpartition("-")[0]
    changes: tuple[Json, ...] = (
        {"suspension": rng.choice(_SUSPENSIONS)},
        {"propagateDeps": True, "priority": 3},
        {"propagateDeps": False},
        {"preemption": "Always", "priority": rng.choice((1, 7))},
        {"preemption": rng.choice(("Always", "Never"))},
        {"priority": rng.choice((-3, 0, 2, 9))},
        {"conflictResolution": rng.choice(("Overwrite", "Abort"))},
        {"schedulePriority": rng.choice(_PRIORITIES)},
        {"preserveResourcesOnDeletion": rng.choice((True, False))},
        {"resourceSelectors": [*objects_at(spec, "resourceSelectors"), *_selectors(rng, (), namespace)]},
        {"failover": rng.choice(_FAILOVERS), "propagateDeps": True},
        {"resourceSelectors": _selectors(rng, (), namespace)},
        {"activationPreference": "Lazy"},
    )
    return {**value, "spec": {**spec, **rng.choice(changes)}}
