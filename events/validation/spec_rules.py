"""Rules of the specs of policies and interpreters that their forms cannot express.

The rules of policy.karmada.io are those of Karmada's admission webhook. Values of the wrong type are ignored here:
the forms report them. Whether an override can be applied depends on the object and is checked when a manifest is
rendered. A ReplicaInterpreter declares how the engine reads a custom kind.
"""

from collections.abc import Iterator
from typing import Final

from events import json_paths, limits
from events.json_values import as_list, as_object, at, list_at, object_at
from events.limits import quoted, shortened
from events.validation import known_kinds as kinds
from events.validation import names
from events.validation.schema import Fault, join

_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})

_INTERPRETER_LISTS: Final = ("podSpecPaths", "statusFields", "dependencies", "retainedFields")
_PATH_CHECK: Final = frozenset({"jsonPath", "operator", "values", "atLeast"})
_NOT_RETAINED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def propagation_rules(value: object) -> Iterator[Fault]:
    """Yield the faults of the spec of a PropagationPolicy or ClusterPropagationPolicy."""
    spec = object_at(value)
    yield from _selection(spec)
    yield from _suspension(object_at(spec, "suspension"))
    yield from _preservation(object_at(spec, "failover"))
    yield from placement_rules(spec)


def placement_rules(spec: dict[str, object]) -> Iterator[Fault]:
    """Yield the faults of the placement in a policy's spec."""
    placement = object_at(spec, "placement")
    yield from _affinities(placement)
    for index, item in enumerate(list_at(placement, "clusterTolerations")):
        yield from toleration_rules(object_at(item), f"spec.placement.clusterTolerations[{index}]")
    yield from _spread(list_at(placement, "spreadConstraints"))
    preference = object_at(placement, "replicaScheduling", "weightPreference")
    for index, item in enumerate(list_at(preference, "staticWeightList")):
        target = object_at(item).get("targetCluster")
        path = f"spec.placement.replicaScheduling.weightPreference.staticWeightList[{index}].targetCluster"
        yield from affinity_rules(target, path)


def override_rules(value: object) -> Iterator[Fault]:
    """Yield the faults in the selectors of the spec of an OverridePolicy or ClusterOverridePolicy."""
    spec = object_at(value)
    for index, item in enumerate(list_at(spec, "resourceSelectors")):
        path = f"spec.resourceSelectors[{index}].labelSelector"
        yield from _label_rules(object_at(item).get("labelSelector"), path)
    yield from affinity_rules(spec.get("targetCluster"), "spec.targetCluster")
    for index, item in enumerate(list_at(spec, "overrideRules")):
        target = object_at(item).get("targetCluster")
        yield from affinity_rules(target, f"spec.overrideRules[{index}].targetCluster")


def taint_rules(value: object) -> Iterator[Fault]:
    """Yield the faults in the target clusters of the spec of a ClusterTaintPolicy."""
    yield from affinity_rules(object_at(value).get("targetClusters"), "spec.targetClusters")


def toleration_rules(toleration: dict[str, object], path: str) -> Iterator[Fault]:
    """Yield the faults of a toleration, by the rules of Kubernetes."""
    key = str(toleration.get("key", ""))
    exists = toleration.get("operator") == "Exists"
    if key and not names.is_label_name(key):
        yield Fault(f"{path}.key", f"{quoted(key)} is not a taint's key")
    if not key and not exists:
        yield Fault(f"{path}.operator", "must be Exists where key is empty", "name a key, or write Exists")
    if exists and toleration.get("value"):
        yield Fault(f"{path}.value", "must be empty with the operator Exists", "leave it out, or write Equal")
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield Fault(f"{path}.effect", "must be NoExecute where tolerationSeconds is set")


def _selection(spec: dict[str, object]) -> Iterator[Fault]:
    for index, item in enumerate(list_at(spec, "resourceSelectors")):
        selector = object_at(item)
        path = f"spec.resourceSelectors[{index}]"
        yield from _label_rules(selector.get("labelSelector"), f"{path}.labelSelector")
        if spec.get("preemption") == "Always" and not selector.get("name"):
            reason = (
                "must name the resource where preemption is Always, or it would take over more than is meant"
            )
            yield Fault(f"{path}.name", reason)


def _suspension(suspension: dict[str, object]) -> Iterator[Fault]:
    clusters = as_list(at(suspension, "dispatchingOnClusters", "clusterNames"))
    if suspension.get("dispatching") is True and clusters:
        yield Fault(
            "spec.suspension",
            "dispatching and dispatchingOnClusters.clusterNames can't stand together",
            "suspend all clusters, or name some",
        )


def _preservation(failover: dict[str, object]) -> Iterator[Fault]:
    for part in ("application", "cluster"):
        behaviour = object_at(failover, part)
        rules = list_at(behaviour, "statePreservation", "rules")
        path = f"spec.failover.{part}.statePreservation.rules"
        if len(rules) > limits.STATUS_RULES_MAX:
            yield Fault(path, f"has {len(rules)} rules, more than {limits.STATUS_RULES_MAX}")
        seen: set[str] = set()
        for index, item in enumerate(rules):
            rule = object_at(item)
            alias, json_path = str(rule.get("aliasLabelName", "")), str(rule.get("jsonPath", ""))
            if not names.is_label_name(alias):
                yield Fault(
                    f"{path}[{index}].aliasLabelName", f"{quoted(alias)} can't be the name of a label"
                )
            if alias in seen:
                yield Fault(f"{path}[{index}].aliasLabelName", f"{quoted(alias)} stands twice")
            seen.add(alias)
            yield from path_rules(json_path, f"{path}[{index}].jsonPath")


def path_rules(json_path: str, field: str) -> Iterator[Fault]:
    """Yield a fault if ``json_path`` cannot be read; ``field`` is the path of the field that holds it."""
    if not json_paths.is_readable(json_path):
        reason = f"{quoted(json_path)} can't be read as a JSON path"
        yield Fault(
            field, reason, "write names, places, [*] and [?(@.name=='text')], such as {.jobStatus.jobID}"
        )


def _affinities(placement: dict[str, object]) -> Iterator[Fault]:
    terms = list_at(placement, "clusterAffinities")
    if terms and placement.get("clusterAffinity") is not None:
        reason = "can't stand together with clusterAffinity"
        yield Fault("spec.placement.clusterAffinities", reason, "keep one of them")
    yield from affinity_rules(placement.get("clusterAffinity"), "spec.placement.clusterAffinity")
    seen: set[str] = set()
    for index, item in enumerate(terms):
        term = object_at(item)
        path = f"spec.placement.clusterAffinities[{index}]"
        name = str(term.get("affinityName", ""))
        if not names.is_label_name(name):
            yield Fault(
                f"{path}.affinityName", f"{quoted(name)} is no name", "use letters, digits, '-', '_', '.'"
            )
        if name in seen:
            yield Fault(f"{path}.affinityName", f"{name!r} stands twice", "give each group its own name")
        seen.add(name)
        yield from affinity_rules(term, path)
        for tier, overflow in enumerate(list_at(term, "overflowAffinities")):
            yield from affinity_rules(overflow, f"{path}.overflowAffinities[{tier}]")


def affinity_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield the faults in the selectors of a cluster affinity."""
    affinity = object_at(value)
    yield from _label_rules(affinity.get("labelSelector"), f"{path}.labelSelector")
    yield from _condition_rules(affinity.get("fieldSelector"), f"{path}.fieldSelector")


def _spread(constraints: list[object]) -> Iterator[Fault]:
    fields: list[str] = []
    for index, item in enumerate(constraints):
        constraint = object_at(item)
        path = f"spec.placement.spreadConstraints[{index}]"
        field, label = str(constraint.get("spreadByField", "")), str(constraint.get("spreadByLabel", ""))
        if field and label:
            yield Fault(path, "spreadByField and spreadByLabel can't stand together", "keep one of them")
        if not field and not label:
            yield Fault(f"{path}.spreadByField", "required", "write cluster, region, zone or provider")
        if field:
            fields.append(field)
        least, most = constraint.get("minGroups", 0), constraint.get("maxGroups", 0)
        if isinstance(least, int) and isinstance(most, int) and 0 < most < least:
            reason = f"is {most}, less than minGroups, which is {least}"
            yield Fault(f"{path}.maxGroups", reason, "raise maxGroups or lower minGroups")
    if fields and "cluster" not in fields:
        yield Fault(
            "spec.placement.spreadConstraints",
            f"spreads by {fields[0]}, but not by cluster",
            "add a constraint with spreadByField: cluster",
        )


def _label_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield the faults in the keys and conditions of a label selector; values of the wrong type are ignored here."""
    selector = object_at(value)
    for name in object_at(selector, "matchLabels"):
        if not names.is_label_name(name):
            yield Fault(f"{path}.matchLabels.{shortened(name)}", "is not a label's name")
    for index, item in enumerate(list_at(selector, "matchExpressions")):
        key = object_at(item).get("key")
        if isinstance(key, str) and not names.is_label_name(key):
            yield Fault(f"{path}.matchExpressions[{index}].key", f"{quoted(key)} is not a label's name")
    yield from _condition_rules(selector, path)


def _condition_rules(value: object, path: str) -> Iterator[Fault]:
    """Yield a fault for each condition that lacks values its operator requires, or has values its operator forbids."""
    expressions = object_at(value).get("matchExpressions")
    for index, item in enumerate(list_at(expressions)):
        condition = object_at(item)
        operator = str(condition.get("operator"))
        values = list_at(condition, "values")
        field = join(path, f"matchExpressions[{index}].values")
        if operator in _WITH_VALUES and not values:
            yield Fault(field, f"is empty with the operator {operator}", "give at least one value")
        if operator in _WITHOUT_VALUES and values:
            yield Fault(field, f"must be empty with the operator {operator}", "leave it out")


def interpreter_rules(value: object) -> Iterator[Fault]:
    """Yield the faults of a ReplicaInterpreter's spec that its form cannot express; skips values of the wrong type."""
    spec = object_at(value)
    yield from _health_rules(as_object(spec.get("health")))
    for name in _INTERPRETER_LISTS:
        items = list_at(spec, name)
        if len(items) > limits.STATUS_RULES_MAX:
            yield Fault(f"spec.{name}", f"has {len(items)} items, more than {limits.STATUS_RULES_MAX}")
    if "replicasPath" not in spec and spec.get("defaultReplicas", 1) != 1:
        yield Fault("spec.defaultReplicas", "must be 1 without a replicasPath", "write 1, or add the path")
    for index, item in enumerate(list_at(spec, "podSpecPaths")):
        yield from path_rules(str(item), f"spec.podSpecPaths[{index}]")
    seen: set[str] = set()
    for index, item in enumerate(list_at(spec, "statusFields")):
        field = f"spec.statusFields[{index}].jsonPath"
        path = str(object_at(item).get("jsonPath", ""))
        yield from path_rules(path, field)
        if path in seen:
            yield Fault(field, f"{quoted(path)} stands twice")
        seen.add(path)
    for index, item in enumerate(list_at(spec, "dependencies")):
        needed = object_at(item)
        field = f"spec.dependencies[{index}]"
        yield from path_rules(str(needed.get("namesPath", "")), f"{field}.namesPath")
        named = str(needed.get("apiVersion", "")), str(needed.get("kind", ""))
        known = kinds.of(*named)
        if kinds.refused(*named) or (
            known is not None and (known.route != "template" or not known.namespaced)
        ):
            yield Fault(f"{field}.kind", f"objects of the kind {named[1][:63]} don't go along with others")
    for index, item in enumerate(list_at(spec, "retainedFields")):
        first = str(item).removeprefix(".").partition(".")[0]
        if first in _NOT_RETAINED:
            yield Fault(
                f"spec.retainedFields[{index}]", f"{first} is never the member's", "name a field below spec"
            )


def _health_rules(health: dict[str, object] | None) -> Iterator[Fault]:
    if health is None:
        return
    if "anyOf" not in health:
        yield from _check_rules(health, "spec.health")
        return
    if len(health) > 1:
        yield Fault("spec.health.anyOf", "can't have other checks beside it", "make each an alternative")
    alternatives = list_at(health, "anyOf")
    checks = [list_at(object_at(alternative), "allOf") for alternative in alternatives]
    count = max(len(alternatives), *(map(len, checks)), 0)
    if count > limits.STATUS_RULES_MAX:
        yield Fault("spec.health.anyOf", f"has a list of {count} items, more than {limits.STATUS_RULES_MAX}")
    for index, items in enumerate(checks):
        field = f"spec.health.anyOf[{index}].allOf"
        for position, item in enumerate(items):
            yield from _check_rules(object_at(item), f"{field}[{position}]")


def _check_rules(check: dict[str, object], field: str) -> Iterator[Fault]:
    has_path, has_condition = bool(check.keys() & _PATH_CHECK), "condition" in check
    if has_path == has_condition:
        reason = "can't have both, a condition and a jsonPath" if has_path else "says nothing"
        yield Fault(field, reason, "write a condition, or a jsonPath with its values")
    elif has_path:
        yield from _path_check_rules(check, field)


def _path_check_rules(check: dict[str, object], field: str) -> Iterator[Fault]:
    operator = check.get("operator", "In")
    if "jsonPath" not in check:
        yield Fault(f"{field}.jsonPath", "required")
    for name in sorted(check.keys() & {"jsonPath", "atLeast"}):
        yield from path_rules(str(check[name]), f"{field}.{name}")
    if "atLeast" in check:
        for name in sorted(check.keys() & {"operator", "values"}):
            yield Fault(f"{field}.{name}", "can't stand beside atLeast", "leave it out")
    elif operator in _WITHOUT_VALUES and "values" in check:
        yield Fault(f"{field}.values", f"must be empty with the operator {operator}", "leave it out")
    elif operator in _WITH_VALUES and "values" not in check:
        yield Fault(f"{field}.values", "required")
