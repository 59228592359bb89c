"""Reads of the write API: current objects as they were written.

A few objects are read on the event loop, because a thread switch would take longer than the query. More of
them are read in a worker thread, so that the event loop stays responsive.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import anyio.to_thread
import msgspec
from msgspec import Struct

from events import keys
from events.kube_objects import KubeObject
from events.validation.verdicts import Head
from projections import clusters, port

_OBJECTS: Final = """
SELECT key, number, version, generation, uid, created_ms, digest, api_version, kind, name, manifest, status, owners
FROM objects JOIN keys USING (id) WHERE key IN ({})
"""
_CLUSTER: Final = "SELECT body FROM clusters JOIN keys USING (id) WHERE key = ?"
_AT_ONCE_MAX: Final = 64
"""Objects read on the event loop; this many take less than a millisecond."""


class StoredObject(Struct, frozen=True, kw_only=True):
    """A stored object: the bytes as written, and the metadata that the fold keeps of it."""

    number: int
    head: Head
    manifest: bytes
    status: bytes = b""
    owners: bytes = b""

    @property
    def content(self) -> KubeObject:
        """The object as written, decoded."""
        return KubeObject(msgspec.json.decode(self.manifest, type=dict[str, object]))


class Views(Protocol):
    """The read models, as the write API uses them."""

    async def settle(self, number: int) -> None:
        """Wait until the record with this number has been folded."""
        ...

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        """The stored objects among these keys; keys without an object are absent."""
        ...

    async def cluster(self, name: str) -> clusters.Cluster | None:
        """The spec of a cluster, None if there is none."""
        ...


class StoredViews:
    """``Views`` on the projections' tables."""

    def __init__(self, views: port.Views) -> None:
        self._views = views

    async def settle(self, number: int) -> None:
        await self._views.wait_folded(number)

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        if len(object_keys) <= _AT_ONCE_MAX:
            return self._objects(object_keys)
        return await anyio.to_thread.run_sync(self._objects, tuple(object_keys))

    async def cluster(self, name: str) -> clusters.Cluster | None:
        return self._cluster(name)

    def _objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        statement = _OBJECTS.format(", ".join("?" * len(object_keys)))
        matches = self._views.store.select(statement, object_keys)
        return {
            key: StoredObject(
                number=number, head=Head(*head), manifest=manifest, status=status, owners=owners
            )
            for key, number, *head, manifest, status, owners in matches
        }

    def _cluster(self, name: str) -> clusters.Cluster | None:
        matches = self._views.store.select(_CLUSTER, (keys.cluster_key(name),))
        body = matches[0][0] if matches else None
        return clusters.decode(body) if isinstance(body, bytes) else None
