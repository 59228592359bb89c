"""Table columns of volumes, volume claims and storage classes."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    NAME,
    UNSET,
    Column,
    at,
    items,
    joined,
    text,
    text_at,
    wide,
)
from events.json_values import list_at
from events.kube_objects import KubeObject

_MODES: Final[Mapping[object, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def _modes(path: str) -> Column:
    def read(value: KubeObject, _now: int) -> str:
        entries = list_at(at(value, path))
        return joined((short for mode, short in _MODES.items() if mode in entries), "")

    return text("Access Modes", read)


def _claim(value: KubeObject, _now: int) -> str:
    name = at(value, "spec.claimRef.name")
    return f"{at(value, 'spec.claimRef.namespace')}/{name}" if name else ""


def _class_name(value: KubeObject, _now: int) -> str:
    mark = " (default)" if value.annotations.get(_DEFAULT_CLASS) == "true" else ""
    return f"{value.name}{mark}"


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
_ATTRIBUTES: Final = text("VolumeAttributesClass", text_at("spec.volumeAttributesClassName", UNSET))

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "PersistentVolume"): (
        NAME,
        text("Capacity", text_at("spec.capacity.storage")),
        _modes("spec.accessModes"),
        text("Reclaim Policy", text_at("spec.persistentVolumeReclaimPolicy")),
        text("Status", text_at("status.phase")),
        text("Claim", _claim),
        text("StorageClass", text_at("spec.storageClassName")),
        _ATTRIBUTES,
        text("Reason", text_at("status.reason")),
        AGE,
        *_VOLUME_MODE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        text("Status", text_at("status.phase")),
        text("Volume", text_at("spec.volumeName")),
        text("Capacity", text_at("status.capacity.storage")),
        _modes("status.accessModes"),
        text("StorageClass", text_at("spec.storageClassName")),
        _ATTRIBUTES,
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
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        text("Attacher", text_at("spec.attacher")),
        text("PV", text_at("spec.source.persistentVolumeName")),
        text("Node", text_at("spec.nodeName")),
        _flag("Attached", "status.attached"),
        AGE,
    ),
}
