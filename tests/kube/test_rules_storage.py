"""Validation of PersistentVolumeClaims and StorageClasses."""

import pytest

from engine.kubeapi.admission.rules import built_in, core
from engine.kubeapi.schema.resources import control_plane
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


CLASS: Json = {"provisioner": "example.com/disk", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}


@pytest.mark.parametrize(
    ("before", "change", "messages"),
    [
        (None, {}, []),
        (None, {"provisioner": ""}, ["provisioner: Required value"]),
        (
            None,
            {"reclaimPolicy": "Recycle", "volumeBindingMode": "Later"},
            [
                'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
                'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
            ],
        ),
        (CLASS, {"allowVolumeExpansion": True}, []),
        (CLASS, {"parameters": {"a": "b"}}, ["parameters: Forbidden: updates to parameters are forbidden."]),
        (
            CLASS,
            {"volumeBindingMode": "WaitForFirstConsumer"},
            ['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable'],
        ),
    ],
)
def test_storage_class_has_a_provisioner_that_never_changes(
    before: Json | None, change: Json, messages: list[str]
) -> None:
    resource = control_plane().resource("storage.k8s.io", "v1", "storageclasses")
    assert resource
    value: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    live = None if before is None else KubeObject({**value, **before})
    faults = built_in.faults(resource, KubeObject({**value, **CLASS, **change}), live)
    assert [fault.text for fault in faults] == messages
