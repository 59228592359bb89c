"""Workers and replicas on one log, with load on them; and the proof at the end that nothing went wrong."""

import asyncio
import secrets
import time
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.cli import failures, listing, reading
from engine.cli.client import Client, Json
from engine.log.kafka import address, numbered
from tests import writes
from tests.faults.said import COUNT, POLICY
from tests.projections import listing_checker
from tests.scaleout import checker, history, watches
from tests.scaleout.loads import Load
from tests.scaleout.processes import Api, Worker

DECIDED_S: Final = 60.0
QUIET_S: Final = 60.0
_OWN: Final = ("specs", "health", "links")
"""What each shard takes at once; a shard that nobody owns at the moment leaves some of it."""

_STILL_S: Final = 0.7
_POLL_S: Final = 0.1
_LOOK_RECORDS: Final = 200
"""How many records lie between two looks at all lists."""


class Installation:
    """Two workers and two replicas, one of them with members; ``load`` is on them between start and proof.

    Where ``is_late``, the second replica starts when the load has ended: it has nothing but the log to go by.
    """

    def __init__(
        self,
        servers: str,
        directory: Path,
        environment: Mapping[str, str],
        words: Sequence[str] = (),
        *,
        is_late: bool,
    ) -> None:
        self.servers = servers
        self.prefix = f"f{secrets.token_hex(4)}"
        self.log = f"kafka://{servers}/{self.prefix}"
        self.directory = directory
        self.workers = [Worker(f"worker{index}", self.log, directory, *words) for index in range(2)]
        self.apis = [
            Api("api0", self.log, directory, "--members"),
            Api("api1", self.log, directory),
        ]
        for each in (*self.workers, *self.apis):
            each.environment.update(environment)
        self._late = self.apis[1:] if is_late else []
        self._early = self.apis[: -1 if is_late else None]
        self.load = Load([api.data for api in self._early], servers, self.prefix)
        self.slowest_s = 0.0
        self.watchers: list[watches.Watcher] = []

    def start(self) -> None:
        """Starts all of them, and the load once they are ready."""
        for each in (*self.workers, *self._early):
            each.launch()
        for worker in self.workers:
            worker.wait_until(worker.has_shards)
        for api in self._early:
            api.wait_until(api.answers)
        with Client(self.apis[0].data) as client:
            writes.apply(client, POLICY.encode())
        if not self._late:
            self.watchers = watches.started(self.apis)
        self.load.start()
        self.until_decided()

    def close(self) -> None:
        """Ends whatever still runs."""
        for each in (*self.load.threads, *self.watchers):
            each.stopping.set()
        for each in (*self.workers, *self.apis):
            each.kill()

    def until_decided(self, without: Container[int] = ()) -> float:
        """Waits until what stands in the shards' specs now has been decided; gives how long that took.

        It does not wait for the shards ``without`` which it is to hold.
        """
        began_s = time.monotonic()
        wanted: dict[int, int] = {}
        while True:
            now = self._lags()
            wanted = wanted or {shard: end for shard, (end, _) in now.items() if shard not in without}
            if now and all(now.get(shard, (0, 0))[1] >= end for shard, end in wanted.items()):
                break
            assert time.monotonic() - began_s < DECIDED_S, self.told(f"not decided: {wanted}, {now}")
            time.sleep(_POLL_S)
        taken_s = time.monotonic() - began_s
        self.slowest_s = max(self.slowest_s, taken_s)
        return taken_s

    def terms(self) -> dict[str, int]:
        """The term of each shard; empty where no door answers."""
        return {str(shard["shard"]): int(str(shard["term"])) for shard in self._shards()}

    def told(self, why: str) -> str:
        """Why a test failed, with the last that each process said."""
        parts = [f"--- {each.name}\n{each.last_lines()}" for each in (*self.workers, *self.apis)]
        return "\n".join([why, *parts])

    def prove(self) -> history.History:
        """Ends the load, waits until all is quiet, and proves the log and what is shown."""
        self.load.stop()
        for api in self._late:
            api.launch()
            api.wait_until(api.answers)
        self._until_quiet()
        found = history.read(self.servers, self.prefix)
        found.acknowledged = self.load.acknowledged()
        found.shown = [_texts(api) for api in self.apis]
        wrong = checker.check(found)
        assert wrong == [], self.told(f"findings in the log: {wrong[:10]}")
        first, *others = [_bindings(api) for api in self.apis]
        assert all(each == first for each in others)
        assert first
        for api in self.apis:
            with Client(api.data) as client:
                report = listing.part(client.get("verify", views="true"))
            assert (report["findings"], report["differences"]) == ([], []), report
        wrong = [line for watcher in self.watchers for line in watcher.differences()]
        assert not wrong, wrong[:10]
        wrong = asyncio.run(_listed(self.log))
        assert not wrong, wrong[:10]
        return found

    def _until_quiet(self) -> None:
        """Waits until nothing comes any more, and both replicas show all of it."""
        until_s = time.monotonic() + QUIET_S
        last: list[tuple[int, int, int] | None] = []
        since_s = time.monotonic()
        while time.monotonic() - since_s < _STILL_S:
            now = [_progress(api) for api in self.apis]
            is_level = all(each is not None and each[0] == 0 for each in now) and len(set(now)) == 1
            if now != last or not is_level:
                last, since_s = now, time.monotonic()
            assert time.monotonic() < until_s, self.told(f"it does not come to rest: {now}")
            time.sleep(_POLL_S)

    def _lags(self) -> dict[int, tuple[int, int]]:
        """The end of each shard's specs, and how far its steps have taken them; empty where no door answers."""
        return {int(str(shard["shard"])): _specs(shard) for shard in self._shards()}

    def _shards(self) -> list[Json]:
        """How far each shard is, as the first door that answers tells it."""
        for api in self._early:
            with suppress(failures.Failure, OSError), Client(api.data) as client:
                return listing.items(listing.part(client.get("lag")).get("shards"))
        return []


@contextmanager
def installed(
    servers: str,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    words: Sequence[str] = (),
    *,
    is_late: bool = True,
) -> Generator[Installation]:
    """An installation that runs under load until the block ends; workers are started with these ``words`` too."""
    found = Installation(servers, directory, environment or {}, words, is_late=is_late)
    try:
        found.start()
        yield found
    finally:
        found.close()


async def _listed(log: str) -> list[str]:
    """What is wrong with the lists and events of views that are folded from this log."""
    async with numbered.reading(address.parse(log)) as reading:
        return await listing_checker.check(
            await reading.read_all(0, reading.last_number()), every=_LOOK_RECORDS
        )


def _specs(shard: Json) -> tuple[int, int]:
    for each in listing.items(shard.get("inputs")):
        if each["topic"] == "specs":
            return int(str(each["end"])), int(str(each["taken"]))
    return 0, 0


def _progress(api: Api) -> tuple[int, int, int] | None:
    """How much waits to be folded or taken, as a replica tells it; how many records it knows and has folded."""
    try:
        with Client(api.data) as client:
            lag = listing.part(client.get("lag"))
    except failures.Failure:
        return None
    waiting = sum(
        int(str(each["waiting"]))
        for shard in listing.items(lag.get("shards"))
        for each in listing.items(shard.get("inputs"))
        if each["topic"] in _OWN
    )
    return int(str(lag["behind"])) + waiting, int(str(lag["lastNumber"])), int(str(lag["folded"]))


def _texts(api: Api) -> dict[str, str]:
    """The text that each Deployment carries, as a replica shows it."""
    with Client(api.data) as client:
        return {
            listing.named(each): str(listing.part(each, "metadata", "annotations").get(COUNT, ""))
            for each in reading.pages(client, "objects", kind="deploy")
        }


def _bindings(api: Api) -> list[Json]:
    with Client(api.data) as client:
        return list(reading.pages(client, "bindings"))
