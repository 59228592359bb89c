"""Recorded watch streams of a real control plane.

Each file is gzip JSON lines: first ``meta``, then watch events (``type``, ``object``) of all kinds in the order
of their resourceVersions. The environment variable ``REBALLAST_RECORDINGS`` names another directory with
such files.
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.observer.shadow import Shadow
from events.json_values import Json
from events.observations import DecisionCompared


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
    def place(self) -> tuple[str, str, str]:
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
    return sorted(path.name.removesuffix(".jsonl.gz") for path in _directory().glob("*.jsonl.gz"))


def _directory() -> Path:
    return Path(os.environ.get("REBALLAST_RECORDINGS") or Path(__file__).parent)


def changes(recording: str) -> Iterator[Change]:
    """Yield the changes of a recording in the order of their resourceVersions."""
    for line in gzip.decompress((_directory() / f"{recording}.jsonl.gz").read_bytes()).splitlines():
        event = _LINE.decode(line)
        if event.object:
            yield Change(event.type, _HEAD.decode(event.object), event.object)


def change(kind: str, value: Json) -> Change:
    """Return a change to an object, as if it had been recorded."""
    text = msgspec.json.encode(value)
    return Change(kind, _HEAD.decode(text), msgspec.Raw(text))


def compare(shadow: Shadow, change: Change) -> DecisionCompared | None:
    """Let a shadow take a change."""
    kind, namespace, name = change.place
    if change.is_gone:
        shadow.take_gone(kind, namespace, name, change.version)
        return None
    return shadow.take(kind, change.manifest)


_LINE: Final = msgspec.json.Decoder(_Line)
_HEAD: Final = msgspec.json.Decoder(Head)
