"""Validation of objects of known kinds, shared by the write API, the engine's folds and the projections.

``check`` is the ``verdicts.Check`` of all of them, so records appended by other producers are judged by the
same rules as writes through the API. Unknown fields pass here, because replay must accept old records that
have them; the write API finds them with ``unknown_fields`` and corrects spellings with ``canonical_object``.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from events import objects
from events.json_values import object_at
from events.validation import interpreters, kind_schemas, names, policies, templates
from events.validation import known_kinds as kinds
from events.validation.schema import Fault, Fields, Form, Free, Text, canonical, faults, unknown


def _no_rules(_spec: object) -> Iterator[Fault]:
    return iter(())


_Rules = Callable[[object], Iterator[Fault]]
# Read when this module is imported: the first check may run in an event loop, which must not wait for files.
_PROPAGATION: Final = kind_schemas.form("policy.karmada.PropagationSpec")
_PLACEMENT: Final = kind_schemas.form("policy.karmada.Placement")
_OVERRIDE: Final = kind_schemas.form("policy.karmada.OverrideSpec")
_TAINT: Final = kind_schemas.form("policy.karmada.ClusterTaintPolicySpec")
_REBALANCER: Final = kind_schemas.form("apps.karmada.WorkloadRebalancerSpec")
_INTERPRETER: Final = kind_schemas.form("config.reballast.ReplicaInterpreterSpec")
_CLUSTER: Final = kind_schemas.form("cluster.karmada.ClusterSpec")
_SPECS: Final[dict[tuple[str, str], tuple[Form, bool, _Rules]]] = {
    (kinds.POLICY_GROUP, "PropagationPolicy"): (_PROPAGATION, True, policies.propagation_rules),
    (kinds.POLICY_GROUP, "ClusterPropagationPolicy"): (_PROPAGATION, True, policies.propagation_rules),
    (kinds.POLICY_GROUP, "OverridePolicy"): (_OVERRIDE, True, policies.override_rules),
    (kinds.POLICY_GROUP, "ClusterOverridePolicy"): (_OVERRIDE, True, policies.override_rules),
    (kinds.POLICY_GROUP, "ClusterTaintPolicy"): (_TAINT, True, policies.taint_rules),
    (kinds.APPS_GROUP, "WorkloadRebalancer"): (_REBALANCER, True, _no_rules),
    (kinds.CONFIG_GROUP, "ReplicaInterpreter"): (_INTERPRETER, True, interpreters.rules),
    (kinds.CLUSTER_GROUP, "Cluster"): (_CLUSTER, False, _no_rules),
}
"""Form of the spec, whether the spec is required, and further rules, by apiVersion and kind."""

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check(manifest: objects.Manifest, raw: msgspec.Raw) -> None:
    """Raise ``objects.Refusal`` for the first fault of an object."""
    for fault in examine(manifest, raw):
        remedy = f"; {fault.remedy}" if fault.remedy else ""
        raise objects.Refusal(fault.field, fault.reason + remedy)


def examine(manifest: objects.Manifest, raw: msgspec.Raw) -> Iterator[Fault]:
    """Yield all faults of an object, in the order of the form's fields."""
    kind = kinds.known(manifest.api_version, manifest.kind)
    if kind is None and (reason := kinds.refused(manifest.api_version, manifest.kind)):
        yield Fault("kind", reason)
        return
    yield from names.head_faults(manifest)
    # The scope of templates is known to the members only.
    if kind is not None and kind.route != "template":
        yield from _scope_faults(kind, manifest.metadata.namespace)
    entry = _SPECS.get((manifest.api_version, manifest.kind))
    if entry is None:
        yield from templates.template_faults(manifest.api_version, manifest.kind, raw)
        yield from templates.import_faults(manifest.metadata.annotations, _placement_faults)
        return
    form, required, rules = entry
    try:
        fields = _FIELDS.decode(raw)
        spec = msgspec.json.decode(fields["spec"]) if "spec" in fields else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        yield Fault("spec", "can't be read, or is nested too deeply")
        return
    if "spec" not in fields:
        if required:
            yield Fault("spec", "required")
        return
    wrong = list(faults(form, spec, "spec"))
    yield from wrong
    # A field with a fault of form gets no second fault from the rules.
    refused = {fault.field for fault in wrong}
    yield from (fault for fault in rules(spec) if fault.field not in refused)


def _placement_faults(placement: object) -> Iterator[Fault]:
    """Yield the faults of a placement, as if a policy had it."""
    spec = {"placement": placement}
    yield from faults(_PLACEMENT, placement, "spec.placement")
    yield from policies.placement_rules(spec)


def unknown_fields(value: dict[str, object]) -> list[str]:
    """Return the paths of fields that the form of a known kind does not have; empty for templates."""
    form = _form(value)
    return list(unknown(form, value, "")) if form else []


def canonical_object(value: dict[str, object], notes: list[str], *, prune: bool) -> dict[str, object]:
    """Return an object of a known kind in canonical spelling; templates stay unchanged.

    See ``schema.canonical`` for ``notes`` and ``prune``.
    """
    form = _form(value)
    if form is None:
        return value
    return object_at(canonical(form, value, "", notes, prune=prune))


def _form(value: dict[str, object]) -> Form | None:
    entry = _SPECS.get((str(value.get("apiVersion")), str(value.get("kind"))))
    if entry is None:
        return None
    known: dict[str, Form] = {
        "apiVersion": Text(),
        "kind": Text(),
        "metadata": Free(),
        "spec": entry[0],
        "status": Free(),
    }
    return Fields(known=known)


def _scope_faults(kind: kinds.Kind, namespace: str) -> Iterator[Fault]:
    if kind.namespaced and not namespace:
        yield Fault("metadata.namespace", f"required for a {kind.kind}")
    if not kind.namespaced and namespace:
        yield Fault("metadata.namespace", f"a {kind.kind} has no namespace", "leave it out")
