"""Warnings for template edits after which the claiming policy no longer selects the template."""

import msgspec

from engine.domain import marks
from engine.http.kube.control_plane import ControlPlane
from engine.kubeapi.schema.resources import control_plane
from engine.objects import policies, selector_index
from events import keys, shapes
from events.kube_objects import KubeObject
from events.validation.known_kinds import POLICY_GROUP


class _Template(msgspec.Struct, frozen=True):
    ref: shapes.WorkloadRef
    labels: dict[str, str]


class Relabelling:
    """Records whether an edit changes labels, so that other writes skip the check."""

    def __init__(self) -> None:
        self._is_found = False

    def __call__(self, value: KubeObject, before: KubeObject | None) -> KubeObject:
        """Return ``value`` unchanged, and record whether its labels differ from those of ``before``."""
        self._is_found = before is not None and value.labels != before.labels
        return value

    async def warnings(self, plane: ControlPlane, value: KubeObject) -> tuple[str, ...]:
        """Return a warning if the labels were changed and the claiming policy no longer selects the template."""
        policy = marks.claiming_policy(value.annotations) if self._is_found else None
        resource = None if policy is None else control_plane().of_kind(POLICY_GROUP, policy.kind)
        if policy is None or resource is None:
            return ()
        stored = await plane.current(resource, policy.namespace, policy.name)
        if stored is None:
            return ()
        template = _template(value)
        if selector_index.Selection(policies.decode(msgspec.json.encode(stored.document)).selectors).selects(
            template
        ):
            return ()
        name = keys.full_name(policy.namespace, policy.name)
        kept = f"this {template.ref.kind}, which keeps its placement until that policy is changed or deleted"
        return (f"{policy.kind} {name} no longer selects {kept}",)


def _template(value: KubeObject) -> _Template:
    ref = shapes.WorkloadRef(
        api_version=value.api_version, kind=value.kind, name=value.name, namespace=value.namespace
    )
    return _Template(ref, {name: str(text) for name, text in value.labels.items()})
