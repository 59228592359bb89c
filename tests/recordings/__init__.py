"""Recorded watch streams of a real control plane.

Each file is gzip JSON lines: first ``meta``, then watch events (``type``, ``object``) of all kinds in the order
of their resourceVersions. The environment variable ``REBALLAST_RECORDINGS`` names another directory with
such files.
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.observer import observation
from engine.observer.shadow import Shadow
from events.json_values import Json
from events.kube_objects import KubeObject
from events.observations import DecisionCompared
from events.records import Record

_OWN: Final = Path(__file__).parent
_SUFFIX: Final = ".jsonl.gz"
ARE_OWN: Final = not os.environ.get("REBALLAST_RECORDINGS")
"""Whether the recordings are those of this folder, of which more is known."""


class Metadata(Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""


class Head(Struct, frozen=True, rename="camel"):
    """Kind and metadata of any object; core kinds were recorded without a group."""

    kind: str
    metadata: Metadata
    api_version: str = "v1"


class Change(Struct, frozen=True):
    """A recorded change: its type, the object's head, and the object as JSON."""

    type: str
    head: Head
    manifest: msgspec.Raw

    @property
    def version(self) -> int:
        return int(self.head.metadata.resource_version)

    @property
    def object_key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.head.kind, self.head.metadata.namespace, self.head.metadata.name

    @property
    def is_gone(self) -> bool:
        return self.type == "DELETED"


class _Line(Struct, frozen=True):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")


def names() -> list[str]:
    """Return the names of the recordings."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in _directory().glob(f"*{_SUFFIX}"))


def of_scenario(scenario: str) -> str:
    """Return the name of the first recording of a scenario (calm, burst, storm); without one, of the longest one."""
    matching = [name for name in names() if name.startswith(scenario)]
    return matching[0] if matching else max(names(), key=lambda name: _file(name).stat().st_size)


def _directory() -> Path:
    return Path(os.environ.get("REBALLAST_RECORDINGS") or _OWN)


def _file(recording: str) -> Path:
    return _directory() / f"{recording}{_SUFFIX}"


def own_changes(recording: str) -> Iterator[Change]:
    """Yield the changes of a recording in this folder, whatever the environment names."""
    yield from _changes(_OWN / f"{recording}{_SUFFIX}")


def changes(recording: str) -> Iterator[Change]:
    """Yield the changes of a recording in the order of their resourceVersions."""
    yield from _changes(_file(recording))


def _changes(file: Path) -> Iterator[Change]:
    for line in gzip.decompress(file.read_bytes()).splitlines():
        event = _LINE.decode(line)
        if event.object:
            yield Change(event.type, _HEAD.decode(event.object), event.object)


def change(kind: str, value: Json) -> Change:
    """Return a change to an object, as if it had been recorded."""
    text = msgspec.json.encode(value)
    return Change(kind, _HEAD.decode(text), msgspec.Raw(text))


def compare(shadow: Shadow, change: Change) -> DecisionCompared | None:
    """Let a shadow take a change."""
    kind, namespace, name = change.object_key
    if change.is_gone:
        shadow.take_deletion(kind, namespace, name, change.version)
        return None
    return shadow.take(kind, change.manifest)


_LINE: Final = msgspec.json.Decoder(_Line)
_HEAD: Final = msgspec.json.Decoder(Head)


def observed(changes: Iterable[Change]) -> list[Record]:
    """Return the records of an observer that has seen these changes."""
    known = observation.Observations()
    seen = (
        known.changed(
            KubeObject(msgspec.json.decode(change.manifest, type=dict[str, object])), is_gone=change.is_gone
        )
        for change in changes
    )
    return [
        observation.record(event, str(number), "/observed/karmada", 1)
        for number, event in enumerate(seen)
        if event is not None
    ]
