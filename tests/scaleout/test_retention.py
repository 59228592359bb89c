"""Deleted records that are still needed: the worker refuses the shard, names the missing records and the remedy.

A worker that takes a shard over continues from a snapshot. If the snapshot is lost and the records before it
were deleted, it cannot own the shard; it continues with the others, and takes the shard once the remedy is
applied.
"""

import asyncio
import re
import ssl
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio.to_thread
import httpx
import msgspec
import pytest

from engine.cli import failures
from engine.log.kafka import address, side_topics
from tests.brokers import configuration
from tests.brokers.processes import LocalBrokers
from tests.processes import READY_S
from tests.rounds import ROUNDS
from tests.scaleout import retention
from tests.scaleout.installation import Installation, installed
from tests.scaleout.processes import Process, Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

REMEDY: Final = "restore its records, or start from a newer snapshot"
OWNED: Final = re.compile(r'reballast_worker_owns\{shard="(\d+)"\}')
WATCHED: Final = re.compile(r"monitoring started\s+port=(\d+)")
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
TRUST: Final = ssl.create_default_context()
"""Made once: reading certificates takes longer than the question."""

_Result = TypeVar("_Result")


def missing(topic: str, partition: int) -> str:
    return f"{topic}/{partition} no longer has offset 0; {REMEDY}"


class Snapshots:
    """The snapshots of a log, to delete and restore them."""

    def __init__(self, log: str) -> None:
        self._at = address.parse(log)

    def newest(self, shard: int) -> tuple[int, bytes]:
        """Return number and content of a shard's newest snapshot."""

        def read(keeper: side_topics.ShardSnapshots) -> tuple[int, bytes]:
            number = keeper.numbers()[0]
            return number, keeper.read(number)

        return asyncio.run(self._with(shard, read))

    def forget(self, shard: int) -> None:
        """Delete all snapshots of a shard."""

        def drop(keeper: side_topics.ShardSnapshots) -> None:
            for number in keeper.numbers():
                keeper.drop(number)

        asyncio.run(self._with(shard, drop))

    def put_back(self, shard: int, number: int, snapshot: bytes) -> None:
        asyncio.run(self._with(shard, lambda keeper: keeper.write(number, [snapshot])))

    async def _with(self, shard: int, work: Callable[[side_topics.ShardSnapshots], _Result]) -> _Result:
        snapshot_topic = side_topics.SnapshotTopic(self._at)
        try:
            ((keeper, _),) = snapshot_topic.of([shard])
            return await anyio.to_thread.run_sync(work, keeper)
        finally:
            await snapshot_topic.close()


def taken_up_to(snapshot: bytes) -> int:
    """Return the offset at which the shard's specs continue after a snapshot."""
    head, _, parts = snapshot[16:].partition(b"\n")
    facts, shard = msgspec.json.decode(head)["sizes"]
    kept: dict[str, Any] = msgspec.json.decode(zlib.decompress(parts[facts : facts + shard]))
    return kept["ends"]["specs"]


@contextmanager
def running(brokers: LocalBrokers, directory: Path) -> Generator[Installation]:
    """Run workers with metrics ports, replicas and load."""
    with installed(brokers.servers, directory, words=("--metrics-port", "0")) as installation:
        yield installation


def answer_of(worker: Worker, path: str) -> str:
    """Return a worker's answer on its metrics port; empty if it has no port yet."""
    ports = WATCHED.findall(COLOURS.sub("", worker.output()))
    if not ports:
        return ""
    return httpx.get(f"http://127.0.0.1:{ports[0]}{path}", trust_env=False, verify=TRUST).text


def owned(worker: Worker) -> list[int]:
    """Return the shards of a worker."""
    return [int(shard) for shard in OWNED.findall(answer_of(worker, "/metrics"))]


def is_well(worker: Worker) -> bool:
    """Whether the worker owns shards, and all that are assigned to it."""
    return answer_of(worker, "/readyz") == "ok" and bool(owned(worker))


def take_over_without(
    running: Installation, snapshots: Snapshots, leaving: Worker, heir: Worker, cut: int
) -> tuple[int, tuple[int, bytes]]:
    """Stop a worker and delete the snapshot and the earlier records of one of its shards before the takeover."""
    leaving.wait_until(lambda: is_well(leaving))
    shards = owned(leaving)
    heir.pause()
    try:
        assert leaving.stop() == 0, leaving.last_lines()
        turned = [shards[(cut + index) % len(shards)] for index in range(len(shards))]
        # A partition without records misses nothing.
        candidates = ((shard, *snapshots.newest(shard)) for shard in turned)
        shard, number, lost = next(candidate for candidate in candidates if taken_up_to(candidate[2]))
        snapshots.forget(shard)
        end = taken_up_to(lost)
        asyncio.run(retention.delete_records(running.servers, f"{running.prefix}.specs", shard, end))
    finally:
        heir.resume()
    return shard, (number, lost)


def refuse_views(running: Installation) -> None:
    """New views cannot be built without the first record, which all running replicas have read."""
    asyncio.run(retention.delete_records(running.servers, f"{running.prefix}.clusters", 0, before=1))
    data = running.directory / "new" / "data"
    projector = Process("new", running.log, running.directory, "projector", "--data", str(data))
    projector.launch()
    try:
        assert projector.ended(READY_S) == failures.FAILED
        assert "error: " in (output := " ".join(projector.output().split()))
        assert re.search(rf"\S+/\d+ no longer has offset 0; {REMEDY}", output)
    finally:
        projector.kill()


def test_shard_with_deleted_records_is_refused_until_they_are_restored(
    tmp_path: Path,
) -> None:
    slowest_s: list[float] = []
    with (
        LocalBrokers(1, properties=configuration.RESTARTED) as brokers,
        running(brokers, tmp_path) as installation,
    ):
        snapshots = Snapshots(installation.log)
        installation.load.until_more(10, READY_S, lambda: installation.with_output("no answers"))
        for number in range(ROUNDS):
            leaving, heir = installation.workers[number % 2], installation.workers[1 - number % 2]
            shard, lost = take_over_without(installation, snapshots, leaving, heir, number)
            reason = missing("specs", shard)
            heir.wait_until(lambda: reason in COLOURS.sub("", heir.output()))  # noqa: B023  # called at once
            installation.until_decided(without={shard})
            assert f'reballast_worker_unreadable{{shard="{shard}"}} 1.0' in answer_of(heir, "/metrics")
            assert answer_of(heir, "/readyz") == f"not ready yet\nshard {shard}: {reason}"
            assert "Traceback" not in heir.output()

            if number == ROUNDS - 1:
                refuse_views(installation)
                retention.restore(brokers)
            else:
                snapshots.put_back(shard, *lost)
            leaving.launch()
            slowest_s.append(installation.until_decided())

        # All records are restored, so the whole log can be verified.
        installation.prove()

    print(f"{ROUNDS} shards without their records, at most {max(slowest_s):.1f} s until they went on")  # noqa: T201
