"""Snapshots of shards, so that a restart reads only what the log got since.

A snapshot holds the shards of a process and the facts that they share, just after a turn in which every shard took a
step: nothing is half taken then, and all have seen the same facts. What follows from the rest is left out: indexes,
timers, columns. It is a cache and proves nothing; one that is damaged, of another release or not of this log is thrown
away, and the log is read from its beginning. Verification never looks at one.

Encoded as JSON, since states hold JSON that has to stay as it was written, byte for byte.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.deciders import folds
from engine.deciders.facts import Facts, FactsState
from engine.deciders.state import ShardState
from engine.log import port
from engine.reconcilers import keepers
from events import chain, release, topics, verdicts

_FORMAT: Final = 7
"""To be raised with each change of what is kept that a release does not tell."""

_DIGEST_BYTES: Final = 16
_KEPT: Final = 2
"""The newest, and the one before it should the newest be damaged."""

_log = diagnostics.logger(__name__)
_PartT = TypeVar("_PartT")


class KeptShard(Struct):
    """A shard just after a step; ``offset`` is where that step stands in the shard's decisions."""

    state: ShardState
    ends: dict[str, int]
    inputs: list[verdicts.PartitionState]
    offset: int


class _Header(Struct, frozen=True):
    """What stands in a line between the digest and the parts: the facts, then each shard, of these ``sizes``."""

    format: int
    release: str
    sizes: list[int]


class UnusableError(Exception):
    """A snapshot can't be used; the message says why."""


class Snapshot:
    """A snapshot that was read, ``number`` being the log's when it was taken.

    ``facts`` are shared by the shards that have nothing to add to them.
    """

    def __init__(self, number: int, facts: memoryview, shards: Sequence[KeptShard]) -> None:
        self.number = number
        self.shards = {kept.state.shard: kept for kept in shards}
        self.facts = Facts(_decoded(facts, FactsState))
        self._encoded_facts = facts

    def facts_again(self) -> Facts:
        """The facts for a shard that goes on with them alone."""
        return Facts(_decoded(self._encoded_facts, FactsState))

    def shard(self, shard: int) -> tuple[folds.ShardFold, int]:
        """A shard to go on with, and the offset behind its last step in its decisions."""
        kept = self.shards[shard]
        return folds.ShardFold(kept.state, kept.ends, kept.inputs), kept.offset + 1


async def save(
    keeper: keepers.Keeper, number: int, facts: Facts, shards: Sequence[tuple[folds.ShardFold, int]]
) -> None:
    """Keeps shards, each with the offset of its last step, and the facts; nobody may change them meanwhile.

    A place that can't be written is told in a line of the log; the next snapshot may find it well again.
    """
    try:
        size = await anyio.to_thread.run_sync(_save, keeper, number, facts, shards)
    except OSError as error:
        _log.warning("no snapshot was kept", number=number, reason=str(error))
    else:
        _log.info("snapshot kept", number=number, size_bytes=size)


async def newest(log: port.Log, keeper: keepers.Keeper, shards: Sequence[int]) -> Snapshot | None:
    """The newest snapshot of these shards that fits the log; those that do not are thrown away."""
    try:
        numbers = await anyio.to_thread.run_sync(keeper.numbers)
    except OSError as error:
        # A snapshot only saves time: without one the shards are rebuilt from the log.
        _log.warning("snapshots not read; the shards are rebuilt from the log", reason=str(error))
        return None
    for number in numbers:
        try:
            snapshot = await anyio.to_thread.run_sync(_load, keeper, number)
            await _check(log, snapshot, shards)
        except UnusableError as error:
            _log.warning("snapshot thrown away", number=number, reason=str(error))
            with contextlib.suppress(OSError):
                await anyio.to_thread.run_sync(keeper.drop, number)
        except (port.LogCutError, port.LogCorruptedError, OSError) as error:
            # Not the snapshot's fault: once the log is restored, or the place can be read, it may be good again.
            _log.warning("snapshot passed over", number=number, reason=str(error))
        else:
            return snapshot
    return None


async def _check(log: port.Log, snapshot: Snapshot, shards: Sequence[int]) -> None:
    """Raises UnusableError where the step of a shard is not in the log."""
    for shard in shards:
        kept = snapshot.shards.get(shard)
        if kept is None:
            raise UnusableError(f"it has no shard {shard}")
        found = await log.read(topics.DECISIONS, shard, kept.offset, 1)
        if not found or chain.step_digest(found[0].value) != kept.state.digest:
            step = f"step {kept.state.number} of shard {shard}"
            raise UnusableError(f"{step} does not stand at offset {kept.offset} of the log")


def _save(
    keeper: keepers.Keeper, number: int, facts: Facts, shards: Sequence[tuple[folds.ShardFold, int]]
) -> int:
    # One part at a time: encoding one is all that others have to wait for.
    parts = [msgspec.json.encode(facts.state)]
    for fold, offset in shards:
        parts.append(msgspec.json.encode(KeptShard(fold.state, fold.ends, fold.inputs, offset)))
    header = _Header(_FORMAT, release.RELEASE, [len(part) for part in parts])
    whole = [msgspec.json.encode(header), b"\n", *parts]
    keeper.write(number, [_digest(whole), *whole])
    for old in keeper.numbers()[_KEPT:]:
        keeper.drop(old)
    return sum(header.sizes)


def _load(keeper: keepers.Keeper, number: int) -> Snapshot:
    read = keeper.read(number)
    whole = memoryview(read)
    if _digest([whole[_DIGEST_BYTES:]]) != read[:_DIGEST_BYTES]:
        raise UnusableError("it is damaged")
    end = read.index(b"\n", _DIGEST_BYTES)
    header = _decoded(whole[_DIGEST_BYTES:end], _Header)
    if (header.format, header.release) != (_FORMAT, release.RELEASE):
        raise UnusableError(f"it is of release {header.release}, format {header.format}")
    parts: list[memoryview] = []
    for size in header.sizes:
        parts.append(whole[end + 1 : end + 1 + size])
        end += size
    shards = [_decoded(part, KeptShard) for part in parts[1:]]
    for kept in shards:
        # Copied out, since each would keep the whole snapshot alive.
        kept.state.placements = {name: raw.copy() for name, raw in kept.state.placements.items()}
    return Snapshot(number, parts[0], shards)


def _decoded(part: memoryview, kind: type[_PartT]) -> _PartT:
    try:
        return msgspec.json.decode(part, type=kind)
    except msgspec.DecodeError as error:
        raise UnusableError(f"it can't be read: {error}") from None


def _digest(parts: Sequence[bytes | memoryview]) -> bytes:
    whole = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        whole.update(part)
    return whole.digest()
