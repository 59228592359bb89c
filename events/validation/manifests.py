"""Validation of objects of known kinds, shared by the write API, the engine's folds and the projections.

All of them use ``check`` as their ``verdicts.Check``, so records appended by other producers are judged by the same
rules as writes through the API. Unknown fields pass here, because replay must accept old records that have them; the
write API corrects their spelling (``canonical_object``), refuses or drops them. Only the write API enforces
``size_faults``, so that larger objects in existing logs are still read as they were.

Of a template, only the fields that the engine reads are checked: replicas and resource requests of built-in kinds. The
member clusters' API servers validate the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from events import imported_placements, kube_objects, limits, records
from events.json_values import DECODING_ERRORS, as_list, as_object, object_at
from events.limits import quoted, shortened
from events.validation import kind_schemas, names, spec_rules
from events.validation import known_kinds as kinds
from events.validation.schema import (
    AnyValue,
    Fault,
    Fields,
    Form,
    Text,
    canonical,
    faults,
    join,
    refuse_first,
)

_Count = Annotated[int, Meta(ge=0, le=limits.REPLICAS_MAX)]
_Quantity = str | int | float


class _Resources(Struct, frozen=True):
    requests: dict[str, _Quantity] = {}
    limits: dict[str, _Quantity] = {}


class _Container(Struct, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, _Quantity] = {}


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(Struct, frozen=True):
    replicas: _Count | None = None
    parallelism: _Count | None = None
    template: _PodTemplate = _PodTemplate()


class _Workload(Struct, frozen=True):
    spec: _Spec = _Spec()


_WORKLOAD: Final = msgspec.json.Decoder(_Workload)
_SIZED: Final = frozenset(
    {
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
    }
)
_AT: Final = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)

_TYPE_NAMES: Final = {
    "int": "a whole number",
    "float": "a fraction",
    "str": "text",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "an object",
}
_TYPE: Final = re.compile(rf"`({'|'.join(_TYPE_NAMES)})(?: \| null)?`")
"""JSON types in msgspec's error messages; ``_TYPE_NAMES`` has the words that users see instead."""


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
    (kinds.POLICY_GROUP, "PropagationPolicy"): (_PROPAGATION, True, spec_rules.propagation_rules),
    (kinds.POLICY_GROUP, "ClusterPropagationPolicy"): (_PROPAGATION, True, spec_rules.propagation_rules),
    (kinds.POLICY_GROUP, "OverridePolicy"): (_OVERRIDE, True, spec_rules.override_rules),
    (kinds.POLICY_GROUP, "ClusterOverridePolicy"): (_OVERRIDE, True, spec_rules.override_rules),
    (kinds.POLICY_GROUP, "ClusterTaintPolicy"): (_TAINT, True, spec_rules.taint_rules),
    (kinds.APPS_GROUP, "WorkloadRebalancer"): (_REBALANCER, True, _no_rules),
    (kinds.CONFIG_GROUP, "ReplicaInterpreter"): (_INTERPRETER, True, spec_rules.interpreter_rules),
    (kinds.CLUSTER_GROUP, "Cluster"): (_CLUSTER, False, _no_rules),
}
"""Form of the spec, whether the spec is required, and further rules, by apiVersion and kind."""

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check(manifest: kube_objects.Manifest, raw: msgspec.Raw) -> None:
    """Raise ``kube_objects.Refusal`` for the first fault of an object."""
    refuse_first(object_faults(manifest, raw))


def object_faults(manifest: kube_objects.Manifest, raw: msgspec.Raw) -> Iterator[Fault]:
    """Yield all faults of an object, in the order of the form's fields."""
    kind = kinds.of(manifest.api_version, manifest.kind)
    if kind is None and (reason := kinds.refused(manifest.api_version, manifest.kind)):
        yield Fault("kind", reason)
        return
    yield from names.head_faults(manifest)
    # Only the members know which kinds of templates are namespaced.
    if kind is not None and kind.route != "template":
        yield from _scope_faults(kind, manifest.metadata.namespace)
    entry = _SPECS.get((manifest.api_version, manifest.kind))
    if entry is None:
        yield from _template_faults(manifest.api_version, manifest.kind, raw)
        yield from _import_faults(manifest.metadata.annotations, _placement_faults)
        return
    form, required, rules = entry
    try:
        fields = _FIELDS.decode(raw)
        spec = msgspec.json.decode(fields["spec"]) if "spec" in fields else None
    except DECODING_ERRORS:
        yield Fault("spec", "can't be read, or is nested too deeply")
        return
    if "spec" not in fields:
        if required:
            yield Fault("spec", "required")
        return
    wrong = list(faults(form, spec, "spec"))
    yield from wrong
    # Report each field once: the rules may find a second fault in a field whose type or range is wrong.
    refused = {fault.field for fault in wrong}
    yield from (fault for fault in rules(spec) if fault.field not in refused)


def _placement_faults(placement: object) -> Iterator[Fault]:
    """Yield the faults of a placement, with the paths that they would have in a policy."""
    spec = {"placement": placement}
    yield from faults(_PLACEMENT, placement, "spec.placement")
    yield from spec_rules.placement_rules(spec)


def canonical_object(value: dict[str, object], notes: list[str]) -> dict[str, object]:
    """Return an object of a known kind in canonical spelling; templates stay unchanged.

    ``notes`` gets a line for each corrected field name.
    """
    form = _form(value)
    if form is None:
        return value
    return object_at(canonical(form, value, "", notes))


def _form(value: dict[str, object]) -> Form | None:
    entry = _SPECS.get((str(value.get("apiVersion")), str(value.get("kind"))))
    if entry is None:
        return None
    known: dict[str, Form] = {
        "apiVersion": Text(),
        "kind": Text(),
        "metadata": AnyValue(),
        "spec": entry[0],
        "status": AnyValue(),
    }
    return Fields(known=known)


def _scope_faults(kind: kinds.Kind, namespace: str) -> Iterator[Fault]:
    if kind.namespaced and not namespace:
        yield Fault("metadata.namespace", f"required for a {kind.kind}")
    if not kind.namespaced and namespace:
        yield Fault("metadata.namespace", f"a {kind.kind} has no namespace", "leave it out")


_SIZE_LIMITED_GROUPS: Final = frozenset(
    {kinds.POLICY_GROUP, kinds.APPS_GROUP, kinds.CLUSTER_GROUP, kinds.CONFIG_GROUP}
)
_SPLIT: Final = "write several objects, each with a part of it"


def size_faults(value: dict[str, object]) -> Iterator[Fault]:
    """Yield at most one fault: a list in the object's spec has too many entries, or the whole spec too many values."""
    if value.get("apiVersion") not in _SIZE_LIMITED_GROUPS:
        return
    most = limits.WORKLOADS_MAX if value.get("kind") == "WorkloadRebalancer" else limits.RULES_MAX
    count = 0
    waiting: list[tuple[str, object]] = [("spec", value.get("spec"))]
    while waiting:
        path, part = waiting.pop()
        fields, items = as_object(part), as_list(part)
        count += len(fields or items or ())
        if items is not None:
            allowed = limits.NAMES_MAX if all(isinstance(item, str) for item in items) else most
            if len(items) > allowed:
                yield Fault(path, f"has {len(items)} entries, more than {allowed}", _SPLIT)
                return
            waiting += ((f"{path}[{index}]", item) for index, item in enumerate(items))
        elif fields is not None:
            waiting += ((join(path, name), item) for name, item in fields.items())
    if count > limits.SPEC_VALUES_MAX:
        yield Fault("spec", f"has {count} fields and entries, more than {limits.SPEC_VALUES_MAX}", _SPLIT)


def _template_faults(api_version: str, kind: str, raw: msgspec.Raw) -> Iterator[Fault]:
    """Yield the faults in the fields that the engine reads of a template of a built-in kind."""
    if (api_version, kind) not in _SIZED:
        return
    try:
        pod = _WORKLOAD.decode(raw).spec.template.spec
    except DECODING_ERRORS as error:
        yield _decoding_fault("nested too deeply" if isinstance(error, RecursionError) else str(error))
        return
    path = "spec.template.spec"
    for name, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, container in enumerate(containers):
            where = f"{path}.{name}[{index}].resources"
            yield from _quantities(container.resources.requests, f"{where}.requests")
            yield from _quantities(container.resources.limits, f"{where}.limits")
    yield from _quantities(pod.overhead, f"{path}.overhead")


def _import_faults(
    annotations: Mapping[str, str], placement_faults: Callable[[object], Iterator[Fault]]
) -> Iterator[Fault]:
    """Yield the faults of an imported placement; ``placement_faults`` checks the placement of a lazy policy in it."""
    if imported_placements.ANNOTATION not in annotations:
        return
    path = f"metadata.annotations[{imported_placements.ANNOTATION}]"
    try:
        _check_depth(annotations[imported_placements.ANNOTATION])
        imported = imported_placements.read(annotations)
        text = imported.placement if imported else ""
        _check_depth(text)
        placement: object = msgspec.json.decode(text) if text else None
    except msgspec.MsgspecError as error:
        example = '{"clusters": {"member1": 2}}'
        yield Fault(path, f"is no placement: {error}", f"write such as {example}")
        return
    for fault in () if placement is None else placement_faults(placement):
        yield Fault(path, f"has a faulty placement: {fault.field}: {fault.reason}", fault.remedy)


def _check_depth(text: str) -> None:
    """Raise msgspec.DecodeError for JSON that some processes cannot decode: all must reach the same verdict."""
    if records.is_deeper(text.encode(), limits.DEPTH_MAX):
        raise msgspec.DecodeError(f"nested deeper than {limits.DEPTH_MAX} levels")


def _quantities(quantities: Mapping[str, _Quantity], path: str) -> Iterator[Fault]:
    for resource, value in quantities.items():
        text = str(value)
        if text.startswith("-") or not names.is_quantity(text):
            reason = f"{quoted(text)} is not a quantity from 0 on"
            yield Fault(f"{path}.{shortened(resource)}", reason, "write such as 250m, 2, 512Mi or 1.5Gi")


def _decoding_fault(message: str) -> Fault:
    match = _AT.fullmatch(message)
    reason, field = (match.group(1), match.group(2)) if match else (message, "spec")
    reason = _TYPE.sub(lambda match: _TYPE_NAMES[match.group(1)], reason)
    return Fault(field.replace("[...]", "[]"), reason[:1].lower() + reason[1:])
