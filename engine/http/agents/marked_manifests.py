"""Manifests for agents, with the marks that follow from template, policy, binding and Work."""

import msgspec

from engine.agent import messages
from engine.domain import marks
from engine.works.manifests import Rendered
from events.kube_objects import KubeObject


def message(rendered: Rendered, propagation: marks.Propagation) -> messages.Manifest:
    """Return the message with the marked manifest; a rendered one with a fault is passed on as it is."""
    if rendered.fault:
        return messages.Manifest(manifest=msgspec.Raw(rendered.manifest), fault=rendered.fault)
    value = KubeObject(msgspec.json.decode(rendered.manifest, type=dict[str, object]))
    return messages.Manifest(
        manifest=msgspec.Raw(msgspec.json.encode(marks.propagated(value, propagation).document)),
        conflict_resolution="Overwrite" if propagation.overwrites else "Abort",
    )
