"""Warnings for template edits after which the claiming policy no longer selects the template."""

import msgspec

from engine.domain import marks
from engine.http.kube.control_plane import ControlPlane
from engine.kubeapi.schema.resources import control_plane
from engine.objects import policies, selector_index
from events import keys, shapes
from events.json_values import Json, object_at
from events.validation.known_kinds import POLICY_GROUP


class _Template(msgspec.Struct, frozen=True):
    ref: shapes.WorkloadRef
    labels: dict[str, str]


class Relabelling:
    """Records whether an edit changes labels, so that other writes skip the check."""

    def __init__(self) -> None:
        self._is_found = False

    def __call__(self, value: Json, before: Json | None) -> Json:
        """Return ``value`` unchanged, and record whether its labels differ from those of ``before``."""
        self._is_found = before is not None and _labels(value) != _labels(before)
        return value

    async def warnings(self, plane: ControlPlane, value: Json) -> tuple[str, ...]:
        """Return a warning if the labels were changed and the claiming policy no longer selects the template."""
        policy = (
            marks.claiming_policy(object_at(value, "metadata", "annotations")) if self._is_found else None
        )
        resource = None if policy is None else control_plane().of_kind(POLICY_GROUP, policy.kind)
        if policy is None or resource is None:
            return ()
        stored = await plane.current(resource, policy.namespace, policy.name)
        if stored is None:
            return ()
        template = _template(value)
        if selector_index.Selection(policies.decode(msgspec.json.encode(stored)).selectors).selects(template):
            return ()
        name = keys.full_name(policy.namespace, policy.name)
        kept = f"this {template.ref.kind}, which keeps its placement until that policy is changed or deleted"
        return (f"{policy.kind} {name} no longer selects {kept}",)


def _template(value: Json) -> _Template:
    metadata = object_at(value, "metadata")
    ref = shapes.WorkloadRef(
        api_version=str(value.get("apiVersion")),
        kind=str(value.get("kind")),
        name=str(metadata.get("name")),
        namespace=str(metadata.get("namespace") or ""),
    )
    return _Template(ref, {name: str(text) for name, text in _labels(value).items()})


def _labels(value: Json) -> Json:
    return object_at(value, "metadata", "labels")
