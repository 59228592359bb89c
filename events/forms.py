"""What an object of a known kind must look like: one check for the door, the engine's folds, and the views.

``check`` is the ``verdicts.Check`` of all of them, so that whoever appends to the log beside the door is judged
alike. Fields that no form knows are passed over here, since programs replay old records with them; the door finds
them with ``unknown_fields``, and puts right what can be meant only in one way with ``canonical_object``.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from events import forms_interpreters as interpreters
from events import forms_kinds as kinds
from events import forms_names as names
from events import forms_overrides as overrides
from events import forms_policies as policies
from events import forms_taints as taints
from events import forms_templates as templates
from events import objects
from events.forms_schema import (
    Fault,
    Fields,
    Form,
    Free,
    Many,
    Table,
    Text,
    Whole,
    as_object,
    canonical,
    faults,
    unknown,
)

_WORKLOAD: Final = Fields(
    known={
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": names.OBJECT,
        "namespace": names.NAMESPACE,
    },
    required=("apiVersion", "kind", "name"),
)
_REBALANCER: Final = Fields(
    known={"workloads": Many(of=_WORKLOAD, least=1), "ttlSecondsAfterFinished": Whole()},
    required=("workloads",),
)
_RANGE: Final = Fields(
    known={"name": Text(filled=True), "min": names.QUANTITY, "max": Free()}, required=("name", "min")
)
CLUSTER: Final = Fields(
    known={
        "provider": Text(),
        "region": Text(),
        "zone": Text(),
        "zones": Many(of=Text(filled=True)),
        "taints": Many(of=taints.TAINT),
        "resourceModels": Many(
            of=Fields(
                known={"grade": Whole(low=0), "ranges": Many(of=_RANGE, least=1)},
                required=("grade", "ranges"),
            )
        ),
        "syncMode": Text(choices=("Push", "Pull")),
        "apiEndpoint": Text(),
        "id": Text(),
        "proxyURL": Text(),
        "proxyHeader": Table(of=Text()),
        "insecureSkipTLSVerification": Free(),
        "secretRef": Free(),
        "impersonatorSecretRef": Free(),
    }
)


def _no_rules(_spec: object) -> Iterator[Fault]:
    return iter(())


_Rules = Callable[[object], Iterator[Fault]]
_SPECS: Final[dict[tuple[str, str], tuple[Form, bool, _Rules]]] = {
    (kinds.POLICY_GROUP, "PropagationPolicy"): (policies.SPEC, True, policies.rules),
    (kinds.POLICY_GROUP, "ClusterPropagationPolicy"): (policies.SPEC, True, policies.rules),
    (kinds.POLICY_GROUP, "OverridePolicy"): (overrides.SPEC, True, overrides.rules),
    (kinds.POLICY_GROUP, "ClusterOverridePolicy"): (overrides.SPEC, True, overrides.rules),
    (kinds.POLICY_GROUP, "ClusterTaintPolicy"): (taints.SPEC, True, taints.rules),
    (kinds.APPS_GROUP, "WorkloadRebalancer"): (_REBALANCER, True, _no_rules),
    (kinds.CONFIG_GROUP, "ReplicaInterpreter"): (interpreters.SPEC, True, interpreters.rules),
    (kinds.CLUSTER_GROUP, "Cluster"): (CLUSTER, False, _no_rules),
}
"""Form of the spec, whether there must be one, and what else must hold of it."""

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check(manifest: objects.Manifest, raw: msgspec.Raw) -> None:
    """Raises ``objects.Refusal`` with the first thing that is wrong with an object."""
    for fault in examine(manifest, raw):
        remedy = f"; {fault.remedy}" if fault.remedy else ""
        raise objects.Refusal(fault.field, fault.reason + remedy)


def examine(manifest: objects.Manifest, raw: msgspec.Raw) -> Iterator[Fault]:
    """All that is wrong with an object, in the order of its fields' forms."""
    if reason := kinds.refused(manifest.api_version, manifest.kind):
        yield Fault("kind", reason)
        return
    yield from names.head_faults(manifest)
    yield from _scope(manifest)
    entry = _SPECS.get((manifest.api_version, manifest.kind))
    if entry is None:
        yield from templates.template_faults(manifest.api_version, manifest.kind, raw)
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
    # What was said of a field's shape need not be said of its meaning.
    told = {fault.field for fault in wrong}
    yield from (fault for fault in rules(spec) if fault.field not in told)


def unknown_fields(value: dict[str, object]) -> list[str]:
    """The paths of the fields that the form of a known kind doesn't have; none for templates."""
    form = _form(value)
    return list(unknown(form, value, "")) if form else []


def canonical_object(value: dict[str, object], notes: list[str], *, prune: bool) -> dict[str, object]:
    """An object of a known kind as it is meant (``forms_schema.canonical``); templates stay as they are."""
    form = _form(value)
    if form is None:
        return value
    return as_object(canonical(form, value, "", notes, prune=prune)) or {}


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


def _scope(manifest: objects.Manifest) -> Iterator[Fault]:
    """Kinds of our own stand in a namespace or don't; of templates the member clusters know."""
    kind = kinds.known(manifest.api_version, manifest.kind)
    if kind is None or kind.route == "template":
        return
    if kind.namespaced and not manifest.metadata.namespace:
        yield Fault("metadata.namespace", f"required for a {kind.kind}")
    if not kind.namespaced and manifest.metadata.namespace:
        yield Fault("metadata.namespace", f"a {kind.kind} has no namespace", "leave it out")
