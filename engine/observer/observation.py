"""The observed objects of another control plane: turns its lists and watch events into one event per change.

Pure. The objects are rebuilt from the log after a restart, so recorded changes are not recorded again.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.agent.discovery import group_kind
from engine.domain import marks, namespaces
from engine.kubeapi.values import resource_versions
from engine.objects import dependencies
from events import codec, keys, limits, observations, records, times
from events.json_values import Json, as_text, object_at
from events.kube_objects import KubeObject
from events.records import Record
from events.validation import known_kinds

SECRET_FIELDS: Final = ("data", "stringData")
"""The fields of a Secret whose values are observed as digests."""

OMITTED: Final = "observer.reballast.io/omitted"
"""Annotation of an object whose content is omitted because it is too large for a record; the value is its size."""

_SYSTEM: Final = keys.object_key("Namespace", "", namespaces.SYSTEM)
"""The key of the namespace whose uid identifies a control plane."""

_MANIFEST_BYTES_MAX: Final = limits.RECORD_BYTES_MAX - 64 * 1024
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")

Observation = observations.ObjectObserved | observations.ObjectVanished


_USUAL_GROUPS: Final = {
    entry.kind: entry.group for entry in reversed((*known_kinds.KINDS, *known_kinds.DERIVED))
} | {"Event": ""}
"""The usual API group of each kind of Kubernetes and Karmada; events omit the group if it is the usual one."""


class _ObservedObject(Struct, frozen=True, gc=False):
    """The uid and the newest observed version of an object."""

    uid: str
    version: int


def full_kind(group: str, kind: str) -> str:
    """Return ``kind.group``, or the kind alone if this is its usual group (as ``ObjectChange.full_kind``)."""
    recorded = recorded_group(group, kind)
    return f"{kind}.{recorded}" if recorded else kind


def recorded_group(group: str, kind: str) -> str:
    """Return the group to record: empty if it is the usual group of this kind."""
    return "" if _USUAL_GROUPS.get(kind) == group else group


class Changes:
    """Reads changes from a log, and adds the kind's group to changes that were recorded without it."""

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}

    def read(self, data: Observation) -> Observation:
        """Return a change, with its API group added if it was recorded without one; usual groups stay omitted."""
        if data.group:
            return data
        if isinstance(data, observations.ObjectObserved):
            if data.kind in _USUAL_GROUPS:
                return data
            group = keys.group_of(as_text(_HEAD.decode(data.manifest).api_version))
            if not group:
                return data
            self._groups[data.record_key] = group
        else:
            group = self._groups.pop(data.record_key, "")
        return msgspec.structs.replace(data, group=group)


class Observations:
    """The objects that were observed, and the newest resourceVersion of each kind."""

    def __init__(self) -> None:
        self._known: dict[str, _ObservedObject] = {}
        self._by_kind: dict[str, set[str]] = {}
        self.newest: dict[str, int] = {}
        """The newest resourceVersion of each kind, by ``full_kind``."""

    def restored(self) -> None:
        """Forget the newest resourceVersions: the control plane was restored from a backup and has lower ones."""
        self.newest.clear()

    def is_of_another(self, value: KubeObject) -> bool:
        """Whether an object is the namespace kube-system of another control plane than the observed one."""
        known = self._known.get(_SYSTEM)
        return (
            keys.object_key(value.kind, *value.key) == _SYSTEM
            and known is not None
            and known.uid not in {"", value.uid}
        )

    def restore(self, data: Observation) -> None:
        """Fold an observation from the log, after ``Changes.read`` has added its group."""
        uid = ""
        if isinstance(data, observations.ObjectObserved):
            uid = as_text(_HEAD.decode(data.manifest).metadata.uid)
        self._remember(data, uid)

    def changed(self, value: KubeObject, *, is_gone: bool, is_listed: bool = False) -> Observation | None:
        """Return the event of a change; None if it is known or outdated, or the value has no name or numeric version.

        ``is_listed``: the value comes from a list, not from a watch.
        """
        kind, name = value.kind, value.name
        version = resource_versions.number(value.resource_version) or 0
        if not kind or not name or not version:
            return None
        namespace, uid = value.namespace, value.uid
        group = recorded_group(*group_kind(value.api_version, kind))
        known = self._known.get(keys.object_key(f"{kind}.{group}" if group else kind, namespace, name))
        # A lower version from a watch is outdated. A lower version from a list is valid: the control plane was
        # restored from a backup.
        if known is not None and (version == known.version or (version < known.version and not is_listed)):
            return None
        if is_gone:
            # The late deletion of an earlier object with this name: the present object has another uid.
            if known is None or (uid and known.uid and uid != known.uid):
                return None
            vanished = observations.ObjectVanished(
                kind=kind, group=group, name=name, namespace=namespace, version=version
            )
            self._remember(vanished, uid)
            return vanished
        manifest = msgspec.json.encode(_shown(value))
        if len(manifest) > _MANIFEST_BYTES_MAX:
            # An object within Kubernetes' size limit may be too large here: JSON needs up to six bytes per character.
            manifest = msgspec.json.encode(_without_content(value, len(manifest)))
        seen = observations.ObjectObserved(
            manifest=msgspec.Raw(manifest),
            kind=kind,
            group=group,
            name=name,
            namespace=namespace,
            version=version,
            skipping=is_listed and known is not None,
        )
        self._remember(seen, uid)
        return seen

    def listed(self, group: str, kind: str, values: Iterable[KubeObject]) -> Iterator[Observation]:
        """Yield the events of a complete list of a kind: deleted objects, then new and changed ones.

        Deletions come first: if the observer is killed before all events are recorded, it continues from the newest
        recorded version, and would miss deletions that come after the event with that version.
        """
        values, full = list(values), full_kind(group, kind)
        listed_keys = {keys.object_key(full, *value.key) for value in values}
        for key in sorted(self._by_kind.get(full, set()) - listed_keys):
            namespace, name = keys.split(key.partition(":")[2])
            vanished = observations.ObjectVanished(
                kind=kind, group=recorded_group(group, kind), name=name, namespace=namespace
            )
            self._remember(vanished, "")
            yield vanished
        for value in values:
            observation = self.changed(value, is_gone=False, is_listed=True)
            if observation is not None:
                yield observation

    def _remember(self, data: Observation, uid: str) -> None:
        key = data.record_key
        of_kind = self._by_kind.setdefault(data.full_kind, set())
        if isinstance(data, observations.ObjectVanished):
            self._known.pop(key, None)
            of_kind.discard(key)
        else:
            self._known[key] = _ObservedObject(uid, data.version)
            of_kind.add(key)
        self.newest[data.full_kind] = max(self.newest.get(data.full_kind, 0), data.version)


def record(
    data: observations.Observation | observations.ControlPlaneRestored,
    event_id: str,
    source: str,
    now_ms: int,
) -> Record:
    """Return the record of an event about another control plane.

    The CloudEvents id is ``<record key>@<event_id>``, so ``event_id`` must differ between events of one key.
    """
    key = data.record_key
    head = records.Envelope(
        id=f"{key}@{event_id}",
        source=source,
        type=data.event_type.type,
        subject=key,
        time=times.to_text(now_ms),
    )
    return codec.encode(data, head, partition=0, key=key)


# The fields are of any type, since an API may serve any; decoding recorded objects after a restart must not fail.
class _Metadata(Struct, frozen=True):
    uid: object = ""


class _Head(Struct, frozen=True, rename="camel"):
    api_version: object = ""
    metadata: _Metadata = _Metadata()


_HEAD: Final = msgspec.json.Decoder(_Head)


def _shown(value: KubeObject) -> Json:
    """Return an object without managed fields; of a Secret, with digests as values and no last-applied annotation."""
    metadata = dict(value.metadata)
    metadata.pop("managedFields", None)
    shown: Json = {**value.document, "metadata": metadata}
    if value.kind != dependencies.SECRET:
        return shown
    for field in SECRET_FIELDS:
        if field in shown:
            shown[field] = {name: _digest(content) for name, content in value.object_at(field).items()}
    annotations = {
        name: text for name, text in object_at(metadata, "annotations").items() if name != marks.LAST_APPLIED
    }
    if annotations or "annotations" in metadata:
        shown["metadata"] = {**metadata, "annotations": annotations}
    return shown


def _without_content(value: KubeObject, size: int) -> Json:
    metadata = {name: item for name, item in value.metadata.items() if name in _IDENTITY}
    metadata["annotations"] = {OMITTED: f"{size} bytes"}
    return {"apiVersion": value.api_version, "kind": value.kind, "metadata": metadata}


def _digest(content: object) -> str:
    return f"sha256:{hashlib.sha256(str(content).encode()).hexdigest()}"
