"""Table columns of volumes, volume claims, storage classes and CSI drivers."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    NAME,
    UNSET,
    Column,
    Reading,
    at,
    items,
    joined,
    length,
    number,
    text,
    text_at,
    wide,
)
from events.json_values import as_text, list_at
from events.kube_objects import KubeObject

_MODES: Final[Mapping[object, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Annotation that overrides the class in the spec of a volume or a claim."""


def _modes(path: str) -> Reading:
    def read(value: KubeObject, _now: int) -> str:
        entries = list_at(at(value, path))
        return joined((short for mode, short in _MODES.items() if mode in entries), "")

    return read


def _if_bound(reading: Reading) -> Reading:
    """Cell function for claims: empty without a volume."""
    return lambda value, now_ms: reading(value, now_ms) if at(value, "spec.volumeName") else ""


def _phase(value: KubeObject, _now: int) -> str:
    return "Terminating" if value.is_ending else value.text_at("status", "phase")


def _class(value: KubeObject, _now: int) -> str:
    return as_text(value.annotations.get(_CLASS, at(value, "spec.storageClassName")))


def _claim(value: KubeObject, _now: int) -> str:
    name = at(value, "spec.claimRef.name")
    return f"{at(value, 'spec.claimRef.namespace')}/{name}" if name else ""


def _class_name(value: KubeObject, _now: int) -> str:
    is_default = any(value.annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    return f"{value.name} (default)" if is_default else value.name


def _audiences(value: KubeObject, _now: int) -> str:
    return joined((request.get("audience", "") for request in items(value, "spec.tokenRequests")), UNSET)


def _lives(value: KubeObject, _now: int) -> str:
    return joined(value.list_at("spec", "volumeLifecycleModes") or ["Persistent"])


def _flag(name: str, path: str, *, otherwise: bool = False, kind: str = "boolean") -> Column:
    def read(value: KubeObject, _now: int) -> bool:
        content = at(value, path)
        return otherwise if content is None else content is True

    return Column(name=name, reading=read, type=kind)


_VOLUME_MODE: Final = wide(text("VolumeMode", text_at("spec.volumeMode", UNSET)))
_CLASSES: Final = (
    text("StorageClass", _class),
    text("VolumeAttributesClass", text_at("spec.volumeAttributesClassName", UNSET)),
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "PersistentVolume"): (
        NAME,
        text("Capacity", text_at("spec.capacity.storage", "0")),
        text("Access Modes", _modes("spec.accessModes")),
        text("Reclaim Policy", text_at("spec.persistentVolumeReclaimPolicy")),
        text("Status", _phase),
        text("Claim", _claim),
        *_CLASSES,
        text("Reason", text_at("status.reason")),
        AGE,
        *_VOLUME_MODE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        text("Status", _phase),
        text("Volume", text_at("spec.volumeName")),
        text("Capacity", _if_bound(text_at("status.capacity.storage", "0"))),
        text("Access Modes", _if_bound(_modes("status.accessModes"))),
        *_CLASSES,
        AGE,
        *_VOLUME_MODE,
    ),
    ("storage.k8s.io", "StorageClass"): (
        Column(name="Name", reading=_class_name, format="name"),
        text("Provisioner", text_at("provisioner")),
        text("ReclaimPolicy", text_at("reclaimPolicy", "Delete")),
        text("VolumeBindingMode", text_at("volumeBindingMode", "Immediate")),
        _flag("AllowVolumeExpansion", "allowVolumeExpansion", kind="string"),
        AGE,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        NAME,
        _flag("AttachRequired", "spec.attachRequired", otherwise=True),
        _flag("PodInfoOnMount", "spec.podInfoOnMount"),
        _flag("StorageCapacity", "spec.storageCapacity"),
        text("TokenRequests", _audiences),
        _flag("RequiresRepublish", "spec.requiresRepublish"),
        text("Modes", _lives),
        AGE,
    ),
    ("storage.k8s.io", "CSINode"): (
        NAME,
        number("Drivers", length("spec.drivers")),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column(name="Attacher", reading=text_at("spec.attacher"), format="name"),
        text("PV", text_at("spec.source.persistentVolumeName")),
        text("Node", text_at("spec.nodeName")),
        _flag("Attached", "status.attached"),
        AGE,
    ),
}
