"""Validation of Karmada objects in the write API, as Karmada's schemas and admission webhooks do it.

``events.validation.manifests`` has the rules that every fold applies. This module has the rules that need the stored
object or concern kinds that no decider reads. Schema errors are 422 (Invalid), admission errors 403 (denied by
the webhook that ``webhook`` names).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from engine.domain import marks
from engine.karmada import cron_rules, resource_models
from engine.kubeapi.admission.rules import autoscaling, quotas
from engine.kubeapi.errors import causes, messages, status_objects
from engine.kubeapi.errors.status_objects import Cause, StatusError
from engine.kubeapi.values import quantity
from engine.objects import policies
from events.json_values import Json, as_list, as_object, at, object_at, objects_at
from events.kube_objects import KubeObject
from events.validation import known_kinds, names, spec_rules

_LIMITS: Final = ("spec.minReplicas", "spec.maxReplicas")

_CLUSTER_NAME_CHARS_MAX: Final = 48

_PROTECTION: Final = "resourcetemplate.karmada.io/deletion-protected"

_ALWAYS: Final = "Always"

_PROTECTION_WEBHOOK: Final = "resourcedeletionprotection.karmada.io"

_PROTECTED: Final = f"This resource is protected, please make sure to remove the label: {_PROTECTION}"


def webhook(kind: str) -> str:
    """Return the name of the webhook with which Karmada checks the rules of a kind."""
    return f"{kind.lower()}.karmada.io"


def rule_causes(value: KubeObject, old: KubeObject | None) -> list[Cause]:
    """Return the admission errors of an object (status 403); ``old`` is the stored object, None for a create."""
    return messages.bounded(_rules(value, old))


def denial(faults: Iterable[Cause]) -> str:
    """Return errors as one line in the wording of a webhook; empty if there are none."""
    texts = [cause.text if cause.field else cause.message for cause in faults]
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)


def _is_protected(value: KubeObject) -> bool:
    """Return whether the label for deletion protection has the value Always; other values have no effect."""
    return value.labels.get(_PROTECTION) == _ALWAYS


def check_deletion(value: KubeObject) -> None:
    """Raise StatusError (403) if the object is protected; the message for Clusters names no webhook, as in Karmada."""
    if not _is_protected(value):
        return
    if (value.api_version, value.kind) == (known_kinds.CLUSTER_GROUP, "Cluster"):
        name = value.name
        message = f'clusters.cluster.karmada.io "{name}" is forbidden: {_PROTECTED}'
        raise StatusError(
            403, "Forbidden", message, {"name": name, "group": "cluster.karmada.io", "kind": "clusters"}
        )
    raise status_objects.denied(_PROTECTION_WEBHOOK, _PROTECTED)


def _rules(value: KubeObject, old: KubeObject | None) -> Iterator[Cause]:
    if known_kinds.of(value.api_version, value.kind) is None:
        return  # a custom kind of another group may have the name of one of Karmada's
    spec = value.object_at("spec")
    match value.kind:
        case "PropagationPolicy" | "ClusterPropagationPolicy":
            if old is not None:
                yield from _policy_update(value, old)
            yield from causes.of_faults(spec_rules.propagation_rules(spec), value.document)
            yield from _repeated_fields(objects_at(spec, "placement", "spreadConstraints"))
            yield from _overflow_names(objects_at(spec, "placement", "clusterAffinities"))
            yield from _workload_affinity(object_at(spec, "placement", "workloadAffinity"))
            yield from _foreign_selectors(value)
            yield from _failover(spec)
        case "OverridePolicy" | "ClusterOverridePolicy":
            yield from _overrides(value)
            yield from _foreign_selectors(value)
        case "ClusterTaintPolicy":
            yield from _repeated_taints(objects_at(spec, "taints"))
        case "FederatedResourceQuota":
            yield from _quota(value)
        case "CronFederatedHPA":
            yield from cron_rules.faults(value)
        case "FederatedHPA":
            # Only the limits are checked: other fields have no effect, and checks of them would need defaults.
            wrong = autoscaling.autoscaler(value, None)
            yield from (cause for cause in wrong if cause.field in _LIMITS)
        case _:
            return


def _policy_update(value: KubeObject, old: KubeObject) -> Iterator[Cause]:
    if old.text_at("spec", "schedulerName") != value.text_at("spec", "schedulerName"):
        yield Cause(field="", reason="FieldValueForbidden", message="the schedulerName should not be updated")
    label = marks.POLICY_IDS[value.kind]
    if old.labels and old.labels.get(label) != value.labels.get(label):
        message = f"label {label} is immutable, it can only be set by the system during creation"
        yield Cause(field="", reason="FieldValueForbidden", message=message)


def _repeated_fields(constraints: list[Json]) -> Iterator[Cause]:
    counts = Counter(
        str(constraint["spreadByField"]) for constraint in constraints if constraint.get("spreadByField")
    )
    for field in sorted(field for field, count in counts.items() if count > 1):
        detail = f"multiple {field} spread constraints are not allowed"
        yield causes.invalid("spec.placement.spreadConstraints", constraints, detail)


def _foreign_selectors(value: KubeObject) -> Iterator[Cause]:
    """Yield an error for each selector of a namespaced policy that names another namespace; it would select nothing."""
    if not value.namespace:
        return
    for index, selector in enumerate(value.objects_at("spec", "resourceSelectors")):
        if (namespace := selector.get("namespace")) not in {None, "", value.namespace}:
            detail = "namespace of resource selector must be the same as the namespace of the policy"
            yield causes.invalid(f"spec.resourceSelectors[{index}].namespace", namespace, detail)


def _workload_affinity(affinity: Json) -> Iterator[Cause]:
    path = "spec.placement.workloadAffinity"
    keys: list[str] = []
    for part in ("affinity", "antiAffinity"):
        if (term := as_object(affinity.get(part))) is not None:
            key = str(term.get("groupByLabelKey", ""))
            keys.append(key)
            yield from messages.each_invalid(
                f"{path}.{part}.groupByLabelKey", key, messages.qualified_faults(key)
            )
    if len(keys) > len(set(keys)):
        detail = "affinity and antiAffinity must not use the same groupByLabelKey"
        yield causes.invalid(path, affinity, detail)


def _overflow_names(terms: list[Json]) -> Iterator[Cause]:
    for index, term in enumerate(terms):
        seen = {term.get("affinityName")}
        for tier, overflow in enumerate(objects_at(term, "overflowAffinities")):
            path = f"spec.placement.clusterAffinities[{index}].overflowAffinities[{tier}].affinityName"
            if (name := overflow.get("affinityName")) is None:
                continue  # allowed: policies from before 0.6.0 have no such names
            yield from messages.each_invalid(path, name, messages.qualified_faults(str(name)))
            if name in seen:
                detail = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"
                yield causes.invalid(path, name, detail)
            seen.add(name)


def _failover(spec: Json) -> Iterator[Cause]:
    application = as_object(at(spec, "failover", "application"))
    if application is None:
        return
    if not spec.get("propagateDeps"):
        detail = "application failover is set, propagateDeps must be true"
        yield causes.invalid("spec.propagateDeps", value=False, detail=detail)
    path = "spec.failover.application.gracePeriodSeconds"
    mode, grace = application.get("purgeMode"), application.get("gracePeriodSeconds")
    if mode not in policies.GRACEFUL and grace is not None:
        yield causes.invalid(path, grace, "only takes effect when purgeMode is gracefully")
    if mode in policies.GRACEFUL and grace is None:
        yield causes.invalid(path, grace, "should not be empty when purgeMode is gracefully")


def _overrides(value: KubeObject) -> Iterator[Cause]:
    spec = value.object_at("spec")
    rules = as_list(spec.get("overrideRules"))
    if spec.get("targetCluster") is not None and rules is not None:
        yield causes.invalid(
            "spec.targetCluster", spec["targetCluster"], "overrideRules and targetCluster can't co-exist"
        )
    overriders = object_at(spec, "overriders")
    if any(overriders.values()) and rules is not None:
        yield causes.invalid("spec.overriders", overriders, "overrideRules and overriders can't co-exist")
    for index, rule in enumerate(objects_at(rules)):
        yield from _overriders(object_at(rule, "overriders"), f"spec.overrideRules[{index}].overriders")


def _overriders(overriders: Json, path: str) -> Iterator[Cause]:
    for index, overrider in enumerate(objects_at(overriders, "labelsOverrider")):
        labels = object_at(overrider, "value")
        where = f"{path}.labelsOverrider[{index}].value"
        texts = {name: str(label) for name, label in labels.items()}
        yield from causes.of_faults(names.label_faults(texts, where), {})
    for index, overrider in enumerate(objects_at(overriders, "annotationsOverrider")):
        yield from messages.annotations(overrider.get("value"), f"{path}.annotationsOverrider[{index}].value")
    for index, overrider in enumerate(objects_at(overriders, "imageOverrider")):
        pointer = at(overrider, "predicate", "path")
        yield from _pointer(pointer, f"{path}.imageOverrider[{index}].predicate.path")
    for index, overrider in enumerate(objects_at(overriders, "fieldOverrider")):
        yield from _field_overrider(overrider, f"{path}.fieldOverrider[{index}]")


def _field_overrider(overrider: Json, path: str) -> Iterator[Cause]:
    if overrider.get("yaml") and overrider.get("json"):
        detail = "FieldOverrider has both YAML and JSON set. Only one is allowed"
        yield causes.invalid(path, overrider, detail)
    if not overrider.get("yaml") and not overrider.get("json"):
        yield causes.required(path, "FieldOverrider must have either JSON or YAML set")
    yield from _pointer(overrider.get("fieldPath"), f"{path}.fieldPath")
    for form in ("json", "yaml"):
        for step, patch in enumerate(objects_at(overrider, form)):
            where = f"{path}.{form}[{step}]"
            yield from _pointer(patch.get("subPath"), f"{where}.subPath")
            value, removes = patch.get("value"), patch.get("operator") == "remove"
            if removes and value is not None:
                yield causes.invalid(f"{where}.value", value, "value is not allowed for remove operation")
            if not removes and value is None:
                detail = "value is required for add or replace operation"
                yield causes.invalid(f"{where}.value", value, detail)


def _pointer(value: object, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and value and not value.startswith("/"):
        yield causes.invalid(path, value, 'JSON pointer must be empty or start with a "/"')


def _repeated_taints(taints: list[Json]) -> Iterator[Cause]:
    for index in _repeated(taints):
        key, effect = taints[index].get("key"), taints[index].get("effect")
        yield causes.duplicate(f"spec.taints[{index}]", f"taint({key}:{effect}) already exist")


def _repeated(taints: list[Json]) -> Iterator[int]:
    """Yield the indexes of taints that repeat an earlier (key, effect)."""
    seen: set[bytes] = set()
    for index, taint in enumerate(taints):
        identity = msgspec.json.encode([taint.get("key"), taint.get("effect")], order="sorted")
        if identity in seen:
            yield index
        seen.add(identity)


def _quota(value: KubeObject) -> Iterator[Cause]:
    overall = value.object_at("spec", "overall")
    assignments = value.objects_at("spec", "staticAssignments")
    yield from quotas.amounts(overall, "spec.overall")
    assigned: dict[str, int] = {}
    unreadable: set[str] = set()
    for assignment in assignments:
        for name, amount in object_at(assignment, "hard").items():
            size = quantity.nano_units_of(amount)
            if size is None:
                unreadable.add(name)
            else:
                assigned[name] = assigned.get(name, 0) + size
    for name, amount in overall.items():
        most = quantity.nano_units_of(amount)
        if most is None or name in unreadable:
            yield causes.invalid(
                f"spec.overall[{name}]", amount, "this amount or an assigned one is not a quantity"
            )
        elif most < assigned.get(name, 0):
            yield causes.invalid(f"spec.overall[{name}]", amount, "overall is less than assignments")
    for index, assignment in enumerate(assignments):
        path = f"spec.staticAssignments[{index}]"
        name = str(assignment.get("clusterName", ""))
        if reason := _cluster_name_fault(name):
            yield causes.invalid(f"{path}.clusterName", name, reason)
        hard = object_at(assignment, "hard")
        yield from quotas.amounts(hard, f"{path}.hard")
        for resource in hard:
            if resource not in overall:
                detail = "assignment resourceName is not exist in overall"
                yield causes.invalid(f"{path}.hard[{resource}]", resource, detail)


def cluster_causes(value: KubeObject, old: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a Cluster (status 422); resource models that are unchanged since ``old`` are not checked."""
    spec, name = value.object_at("spec"), value.at("metadata", "name")
    if isinstance(name, str) and (reason := _cluster_name_fault(name)):
        yield causes.invalid("metadata.name", name, reason)
    if not spec.get("syncMode"):
        yield causes.required("spec.syncMode")
    for field in ("secretRef", "impersonatorSecretRef"):
        fields = as_object(spec.get(field))
        for part in ("namespace", "name"):
            if fields is not None and not fields.get(part):
                yield causes.required(f"spec.{field}.{part}")
    proxy = spec.get("proxyURL")
    if isinstance(proxy, str) and proxy and not proxy.startswith(("http://", "https://", "socks5://")):
        scheme = proxy.partition("://")[0]
        yield causes.invalid(
            "spec.proxyURL", proxy, f'unsupported scheme "{scheme}", must be http, https, or socks5'
        )
    taints = objects_at(spec, "taints")
    for index in _repeated(taints):
        yield causes.duplicate(f"spec.taints[{index}]", taints[index])
    models = objects_at(spec, "resourceModels")
    if old is None or models != old.objects_at("spec", "resourceModels"):
        yield from resource_models.faults(models)


def _cluster_name_fault(name: str) -> str:
    if not name:
        return "must be not empty"
    if len(name) > _CLUSTER_NAME_CHARS_MAX:
        return f"must be no more than {_CLUSTER_NAME_CHARS_MAX} characters"
    if "." in name or not names.is_dns_name(name):
        return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
    return ""
