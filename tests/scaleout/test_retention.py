"""Records thrown away that somebody still needs: he refuses to go on, names what is missing, and says what to do.

A worker that takes a shard over goes on from a snapshot; where that is lost, and the records before it are not kept any
more, he can't own the shard. He goes on with the others, and takes it once the remedy that he names is there.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio.to_thread
import httpx
import msgspec
import pytest

from engine.cli import failures
from engine.log.kafka import address, snapshot_topic
from tests.brokers.processes import LocalBrokers
from tests.rounds import ROUNDS
from tests.scaleout import retention
from tests.scaleout.installation import Installation, installed
from tests.scaleout.processes import READY_S, Process, Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

REMEDY: Final = "restore its records, or begin with a snapshot that is newer"
OWNED: Final = re.compile(r'reballast_worker_owns\{shard="(\d+)"\}')
WATCHED: Final = re.compile(r"watched\s+port=(\d+)")
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
TRUST: Final = ssl.create_default_context()
"""Made once: reading certificates takes longer than the question."""

_Result = TypeVar("_Result")


def missing(topic: str, partition: int) -> str:
    return f"{topic}/{partition} is not kept from 0 on any more; {REMEDY}"


class Snapshots:
    """The snapshots of a log, for one who loses them and puts them back."""

    def __init__(self, log: str) -> None:
        self._at = address.parse(log)

    def newest(self, shard: int) -> tuple[int, bytes]:
        """The newest of a shard, with its number."""

        def read(keeper: snapshot_topic.ShardKeeper) -> tuple[int, bytes]:
            number = keeper.numbers()[0]
            return number, keeper.read(number)

        return asyncio.run(self._with(shard, read))

    def forget(self, shard: int) -> None:
        """Throws all of a shard away."""

        def drop(keeper: snapshot_topic.ShardKeeper) -> None:
            for number in keeper.numbers():
                keeper.drop(number)

        asyncio.run(self._with(shard, drop))

    def put_back(self, shard: int, number: int, snapshot: bytes) -> None:
        asyncio.run(self._with(shard, lambda keeper: keeper.write(number, [snapshot])))

    async def _with(self, shard: int, work: Callable[[snapshot_topic.ShardKeeper], _Result]) -> _Result:
        places = snapshot_topic.SnapshotTopic(self._at)
        try:
            ((keeper, _),) = places.of([shard])
            return await anyio.to_thread.run_sync(work, keeper)
        finally:
            await places.close()


def taken_up_to(snapshot: bytes) -> int:
    """Where the shard's specs go on behind a snapshot."""
    head, _, parts = snapshot[16:].partition(b"\n")
    facts, shard = msgspec.json.decode(head)["sizes"]
    kept: dict[str, Any] = msgspec.json.decode(parts[facts : facts + shard])
    return kept["ends"]["specs"]


@contextmanager
def running(brokers: LocalBrokers, directory: Path) -> Generator[Installation]:
    """Workers that are watched, replicas and load."""
    with installed(brokers.servers, directory, words=("--metrics-port", "0")) as found:
        yield found


def asked(worker: Worker, path: str) -> str:
    """What a worker shows at its own port; nothing where it has none yet."""
    ports = WATCHED.findall(COLOURS.sub("", worker.said()))
    if not ports:
        return ""
    return httpx.get(f"http://127.0.0.1:{ports[0]}{path}", trust_env=False, verify=TRUST).text


def owned(worker: Worker) -> list[int]:
    """The shards of a worker."""
    return [int(shard) for shard in OWNED.findall(asked(worker, "/metrics"))]


def is_well(worker: Worker) -> bool:
    """Whether it owns some shards, and all that it is assigned."""
    return asked(worker, "/readyz") == "ok" and bool(owned(worker))


def take_over_without(
    running: Installation, snapshots: Snapshots, leaving: Worker, heir: Worker, cut: int
) -> tuple[int, tuple[int, bytes]]:
    """A worker leaves; of one of its shards the snapshot is lost, and the records before it, before anyone goes on."""
    leaving.wait_until(lambda: is_well(leaving))
    mine = owned(leaving)
    heir.pause()
    try:
        assert leaving.stop() == 0, leaving.last_lines()
        turned = [mine[(cut + index) % len(mine)] for index in range(len(mine))]
        # What nothing was written to yet misses nothing.
        found = ((shard, *snapshots.newest(shard)) for shard in turned)
        shard, number, lost = next(each for each in found if taken_up_to(each[2]))
        snapshots.forget(shard)
        end = taken_up_to(lost)
        asyncio.run(retention.throw_away(running.servers, f"{running.prefix}.specs", shard, end))
    finally:
        heir.resume()
    return shard, (number, lost)


def refuse_views(running: Installation) -> None:
    """Who keeps views and has none yet can't begin without the first records."""
    asyncio.run(retention.throw_away(running.servers, f"{running.prefix}.clusters", 0))
    data = running.directory / "new" / "data"
    projector = Process("new", running.log, running.directory, "projector", "--data", str(data))
    projector.launch()
    try:
        assert projector.ended(READY_S) == failures.FAILED
        assert "error: " in (said := " ".join(projector.said().split()))
        assert re.search(rf"\S+/\d+ is not kept from 0 on any more; {REMEDY}", said)
    finally:
        projector.kill()


def test_a_shard_without_its_records_is_refused_with_the_remedy_and_goes_on_once_it_is_there(
    tmp_path: Path,
) -> None:
    slowest_s: list[float] = []
    with LocalBrokers(1) as brokers, running(brokers, tmp_path) as found:
        snapshots = Snapshots(found.log)
        found.load.until_more(10, READY_S, lambda: found.told("no answers"))
        for number in range(ROUNDS):
            leaving, heir = found.workers[number % 2], found.workers[1 - number % 2]
            shard, lost = take_over_without(found, snapshots, leaving, heir, number)
            told = missing("specs", shard)
            heir.wait_until(lambda: told in COLOURS.sub("", heir.said()))  # noqa: B023  # called at once
            found.until_decided(without={shard})
            assert f'reballast_worker_unreadable{{shard="{shard}"}} 1.0' in asked(heir, "/metrics")
            assert asked(heir, "/readyz") == f"not ready yet\nshard {shard}: {told}"
            assert "Traceback" not in heir.said()

            if number == ROUNDS - 1:
                refuse_views(found)
                retention.restore(brokers)
            else:
                snapshots.put_back(shard, *lost)
            leaving.launch()
            slowest_s.append(found.until_decided())

        # All records are there again, so that all of it can be proved.
        found.prove()

    print(f"{ROUNDS} shards without their records, at most {max(slowest_s):.1f} s until they went on")  # noqa: T201
