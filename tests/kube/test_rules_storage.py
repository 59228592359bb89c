"""Validation of PersistentVolumeClaims."""

import pytest

from engine.kubeapi.admission.rules import core
from events.json_values import Json
from events.kube_objects import KubeObject

_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _changed(before: Json, after: Json) -> list[str]:
    """Return the fields of the errors of a change."""
    old, new = (KubeObject({"spec": {**_CLAIM, **spec}}) for spec in (before, after))
    return [cause.field for cause in core.claim(new, old)]


@pytest.mark.parametrize(
    ("size", "fields"),
    [("2Gi", []), ("1024Mi", []), ("1Mi", ["spec.resources.requests.storage"])],
)
def test_claim_may_grow(size: str, fields: list[str]) -> None:
    assert _changed({}, {"resources": {"requests": {"storage": size}}}) == fields


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({}, {"volumeName": "a"}, []),
        ({"volumeName": "a"}, {"volumeName": "b"}, ["spec"]),
        ({"volumeName": "a"}, {}, ["spec"]),
        ({}, {"storageClassName": "fast"}, []),
        ({"storageClassName": "slow"}, {"storageClassName": "fast"}, ["spec"]),
        ({"storageClassName": ""}, {"storageClassName": "fast"}, ["spec"]),
        ({"volumeAttributesClassName": "silver"}, {"volumeAttributesClassName": "gold"}, []),
        ({}, {"accessModes": ["ReadOnlyMany"]}, ["spec"]),
        ({}, {"resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}}}, ["spec"]),
    ],
)
def test_volume_and_class_of_a_claim_are_set_once(before: Json, after: Json, fields: list[str]) -> None:
    assert _changed(before, after) == fields
