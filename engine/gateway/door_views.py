"""What the door asks of the read models: what stands now, as it was written.

Questions about a few objects are answered at once: handing them to a thread takes longer than the answer. Longer
reads run in a worker thread, so that the event loop goes on meanwhile.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import anyio.to_thread
from msgspec import Struct

from events import keys
from events.verdicts import Head
from projections import clusters, port
from projections.port import Rows

_OBJECT: Final = """
SELECT number, version, generation, uid, created_ms, digest, api_version, kind, name, manifest, status, owners
FROM objects JOIN keys USING (id) WHERE key = ?
"""
_CLUSTER: Final = "SELECT body FROM clusters JOIN keys USING (id) WHERE key = ?"
_AT_ONCE_MAX: Final = 64
"""So many objects take less than a millisecond."""


class Held(Struct, frozen=True, kw_only=True):
    """An object as it stands: the bytes that were written, and what the fold keeps of it."""

    number: int
    head: Head
    manifest: bytes
    status: bytes = b""
    owners: bytes = b""


class Views(Protocol):
    """What the door reads."""

    async def settle(self, number: int) -> None:
        """Returns when the record with this number is folded in."""
        ...

    async def objects(self, wanted: Sequence[str]) -> dict[str, Held]:
        """The objects with these keys, as far as they exist."""
        ...

    async def cluster(self, name: str) -> clusters.Cluster | None:
        """The facts of a cluster."""
        ...


class StoredViews:
    """``Views`` over the projections."""

    def __init__(self, views: port.Views) -> None:
        self._views = views

    async def settle(self, number: int) -> None:
        """See ``Views``."""
        await self._views.wait_folded(number)

    async def objects(self, wanted: Sequence[str]) -> dict[str, Held]:
        """See ``Views``."""
        if len(wanted) <= _AT_ONCE_MAX:
            return self._objects(wanted)
        return await anyio.to_thread.run_sync(self._objects, tuple(wanted))

    async def cluster(self, name: str) -> clusters.Cluster | None:
        """See ``Views``."""
        return self._cluster(name)

    def _objects(self, wanted: Sequence[str]) -> dict[str, Held]:
        with self._views.store.reading() as rows:
            return {key: held for key in wanted if (held := _held(rows, key)) is not None}

    def _cluster(self, name: str) -> clusters.Cluster | None:
        with self._views.store.reading() as rows:
            found = rows.select(_CLUSTER, (keys.cluster_key(name),))
        body = found[0][0] if found else None
        return clusters.decode(body) if isinstance(body, bytes) else None


def _held(rows: Rows, key: str) -> Held | None:
    found = rows.select(_OBJECT, (key,))
    if not found:
        return None
    (
        number,
        version,
        generation,
        uid,
        created_ms,
        digest,
        api_version,
        kind,
        name,
        manifest,
        status,
        owners,
    ) = found[0]
    head = Head(version, generation, uid, created_ms, digest, api_version, kind, name)
    return Held(number=number, head=head, manifest=manifest, status=status, owners=owners)
