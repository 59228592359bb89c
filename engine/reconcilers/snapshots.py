"""Snapshots of shards, so that a restart reads only the end of the log.

A snapshot holds the shards of a process and their shared facts, taken after a turn in which every shard took
a step: no input is half processed and all shards have seen the same facts. Derived data (indexes, timers,
columns) is left out. A snapshot is a cache and proves nothing: if it is damaged, of another release or not of
this log, it is deleted and the log is read from the beginning. A proof uses one only on request
(``log verify --since-snapshot``), and then trusts it.

The encoding is compressed JSON: states contain raw JSON that must be kept byte for byte.
"""

import contextlib
import hashlib
import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.deciders import shard_fold, sharing
from engine.deciders.facts import Facts, FactsState
from engine.deciders.state import ShardState
from engine.log import port
from engine.reconcilers import snapshot_storage
from events import chain, release, topics
from events.validation import verdicts

FORMAT: Final = 23
"""Format of stored snapshots. Increase it if the encoding of the state changes without a new release."""

_DIGEST_BYTES: Final = 16
_COMPRESSION: Final = 1
"""The fastest compression level: the size is a fifth of the original, and higher levels save little more."""
_RETAINED: Final = 2
"""Number of snapshots kept: the newest one, and the one before in case the newest is damaged."""

_log = diagnostics.logger(__name__)
_PartT = TypeVar("_PartT")


class ShardSnapshot(Struct):
    """State of a shard after a step; ``offset`` is the offset of that step in the shard's decisions."""

    state: ShardState
    ends: dict[str, int]
    inputs: list[verdicts.PartitionState]
    offset: int


class _Header(Struct, frozen=True):
    """One line between the digest and the compressed parts (the facts, then each shard).

    ``sizes`` are the parts' compressed lengths in bytes.
    """

    format: int
    release: str
    sizes: list[int]


class UnusableError(Exception):
    """A snapshot cannot be used; the message is the reason."""


class Snapshot:
    """A loaded snapshot; ``number`` is its number in the storage.

    Its shards share ``facts``; a replay of later steps changes only a copy of them.
    """

    def __init__(self, number: int, facts: memoryview, shards: Sequence[ShardSnapshot]) -> None:
        self.number = number
        self.shards = {snapshot.state.shard: snapshot for snapshot in shards}
        self.facts = Facts(_decode(facts, FactsState))

    def shard(self, shard: int) -> tuple[shard_fold.ShardFold, int]:
        """Return a shard's fold and the offset after its last step in decisions."""
        snapshot = self.shards[shard]
        return shard_fold.ShardFold(snapshot.state, snapshot.ends, snapshot.inputs), snapshot.offset + 1

    def chain(self, shard: int) -> chain.Chain:
        """Return a shard's chain as of its last step."""
        return chain_of(self.shards[shard].state)


def chain_of(state: ShardState) -> chain.Chain:
    """Return a shard's chain after the last step, ready for the next one; ``state`` has all outputs of that step."""
    return chain.Chain(state.shard, state.number, state.term, state.digest)


def copied(fold: shard_fold.ShardFold) -> shard_fold.ShardFold:
    """Return an independent copy of a fold; call it only directly after a step."""
    encoded = msgspec.json.encode(ShardSnapshot(fold.state, fold.ends, fold.inputs, 0))
    snapshot = msgspec.json.decode(encoded, type=ShardSnapshot)
    sharing.compact_shard(snapshot.state, snapshot.inputs)
    return shard_fold.ShardFold(snapshot.state, snapshot.ends, snapshot.inputs)


async def save(
    store: snapshot_storage.SnapshotStore,
    number: int,
    facts: Facts,
    shards: Sequence[tuple[shard_fold.ShardFold, int]],
) -> None:
    """Store the facts and the shards, each with the offset of its last step; neither may change during the call.

    Failures of the storage are logged, not raised; the next snapshot may succeed.
    """
    try:
        size = await anyio.to_thread.run_sync(_save, store, number, facts, shards)
    except OSError as error:
        _log.warning("snapshot not stored", number=number, error=str(error))
    else:
        _log.info("snapshot stored", number=number, size_bytes=size)


async def newest(
    log: port.Log, store: snapshot_storage.SnapshotStore, shards: Sequence[int], *, discards: bool = True
) -> Snapshot | None:
    """Return the newest snapshot of these shards that matches the log; None if there is none.

    With ``discards``, delete newer snapshots that cannot be used.
    """
    try:
        numbers = await anyio.to_thread.run_sync(store.numbers)
    except OSError as error:
        # A snapshot only saves time: without one the shards are rebuilt from the log.
        _log.warning("snapshots not readable; rebuilding shards from the log", error=str(error))
        return None
    for number in numbers:
        try:
            snapshot = await anyio.to_thread.run_sync(_load, store, number)
            await _check(log, snapshot, shards)
        except UnusableError as error:
            if not discards:
                continue
            _log.warning("snapshot discarded", number=number, error=str(error))
            with contextlib.suppress(OSError):
                await anyio.to_thread.run_sync(store.drop, number)
        except (port.LogCutError, port.LogCorruptedError, OSError) as error:
            # The log or the storage failed, so keep the snapshot: it may be usable after a repair.
            _log.warning("snapshot skipped", number=number, error=str(error))
        else:
            return snapshot
    return None


async def newest_of_shards(
    log: port.Log,
    storage: snapshot_storage.SnapshotStorage,
    shards: Sequence[int],
    *,
    discards: bool = True,
) -> dict[int, Snapshot]:
    """Return the newest usable snapshot of each shard that has one (see ``newest``)."""
    newest_of: dict[int, Snapshot] = {}
    for store, store_shards in storage.of(shards):
        snapshot = await newest(log, store, store_shards, discards=discards)
        if snapshot is not None:
            newest_of.update(dict.fromkeys(store_shards, snapshot))
    return newest_of


async def _check(log: port.Log, snapshot: Snapshot, shards: Sequence[int]) -> None:
    """Raise UnusableError unless the log has, for each shard, the step after which its state was stored."""
    for shard in shards:
        shard_snapshot = snapshot.shards.get(shard)
        if shard_snapshot is None:
            raise UnusableError(f"it has no shard {shard}")
        records = await log.read(topics.DECISIONS, shard, shard_snapshot.offset, 1)
        if not records or chain.step_digest(records[0].value) != shard_snapshot.state.digest:
            step = f"step {shard_snapshot.state.number} of shard {shard}"
            raise UnusableError(f"{step} is not at offset {shard_snapshot.offset} of the log")


def _save(
    store: snapshot_storage.SnapshotStore,
    number: int,
    facts: Facts,
    shards: Sequence[tuple[shard_fold.ShardFold, int]],
) -> int:
    # Encode one part at a time: encoding holds the GIL, and other threads wait for the longest part.
    parts = [_compressed(facts.state)]
    for fold, offset in shards:
        parts.append(_compressed(ShardSnapshot(fold.state, fold.ends, fold.inputs, offset)))
    header = _Header(FORMAT, release.RELEASE, [len(part) for part in parts])
    content = [msgspec.json.encode(header), b"\n", *parts]
    store.write(number, [_digest(content), *content])
    # Delete after the write: a process that ends in between leaves one snapshot too many, not one too few.
    for number_dropped in store.numbers()[_RETAINED:]:
        store.drop(number_dropped)
    return sum(header.sizes)


def _load(store: snapshot_storage.SnapshotStore, number: int) -> Snapshot:
    content = store.read(number)
    view = memoryview(content)
    if _digest([view[_DIGEST_BYTES:]]) != content[:_DIGEST_BYTES]:
        raise UnusableError("it is damaged")
    end = content.index(b"\n", _DIGEST_BYTES)
    header = _decode(view[_DIGEST_BYTES:end], _Header)
    if (header.format, header.release) != (FORMAT, release.RELEASE):
        raise UnusableError(f"it is of release {header.release}, format {header.format}")
    parts: list[memoryview] = []
    for size in header.sizes:
        parts.append(view[end + 1 : end + 1 + size])
        end += size
    return Snapshot(number, _decompressed(parts[0]), [_shard(part) for part in parts[1:]])


def _shard(part: memoryview) -> ShardSnapshot:
    """Decode a shard; equal values in it share memory. Decode shards one by one: each decompressed part is large."""
    shard = _decode(_decompressed(part), ShardSnapshot)
    sharing.compact_shard(shard.state, shard.inputs)
    return shard


def _compressed(part: Struct) -> bytes:
    return zlib.compress(msgspec.json.encode(part), _COMPRESSION)


def _decompressed(part: memoryview) -> memoryview:
    try:
        return memoryview(zlib.decompress(part))
    except zlib.error as error:
        raise UnusableError(f"it cannot be decompressed: {error}") from None


def _decode(part: memoryview, kind: type[_PartT]) -> _PartT:
    try:
        return msgspec.json.decode(part, type=kind)
    except msgspec.DecodeError as error:
        raise UnusableError(f"it cannot be decoded: {error}") from None


def _digest(parts: Sequence[bytes | memoryview]) -> bytes:
    hasher = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        hasher.update(part)
    return hasher.digest()
