"""Workers that share the shards of one log in memory."""

from collections.abc import Iterable, Sequence

from engine.log import local, port
from engine.reconcilers import worker
from events import codec, decisions, topics
from events.records import Record
from tests.deciders.story import Story

EVEN = tuple(range(0, topics.SHARDS, 2))

ODD = tuple(range(1, topics.SHARDS, 2))


class Contested:
    """Ownership by the newest owner: a worker that lost a shard learns it at its commit."""

    def __init__(self, log: port.Log, owners: dict[int, "Contested"]) -> None:
        self._sole = local.SoleOwner(log)
        self._owners = owners
        self.owned: list[tuple[int, ...]] = []
        self.held: set[int] = set()

    async def own(self, shards: Iterable[int]) -> None:
        taken = tuple(shards)
        self.owned.append(taken)
        self.held.update(taken)
        self._owners.update(dict.fromkeys(taken, self))

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        self._sole.begin(shard, number, term, digest)

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        if lost := [shard for shard, _ in steps if self._owners[shard] is not self]:
            raise port.OwnershipLostError(lost)
        return await self._sole.commit(steps)

    async def check(self) -> None:
        await self._sole.check()

    def check_due_ms(self) -> int | None:
        return self._sole.check_due_ms()

    async def release(self, shards: Iterable[int]) -> None:
        self.held.difference_update(shards)
        await self._sole.release(shards)


class Workers:
    """Workers on one log that run in turn."""

    def __init__(self, log: local.MemoryLog | None = None) -> None:
        self.story = Story(log or local.MemoryLog())
        self._owners: dict[int, Contested] = {}
        self.rights: list[Contested] = []
        self.workers = [self.join(), self.join()]

    def join(self) -> worker.Worker:
        right = Contested(self.story.log, self._owners)
        self.rights.append(right)
        return worker.Worker(self.story.log, self.story.clock, (), owner=right)

    async def work(self) -> None:
        """Let all workers run turns until nothing is left to do."""
        while behind := [member for member in self.workers if member.is_behind()]:
            for member in behind:
                await member.turn()

    def placed(self) -> dict[str, dict[str, int]]:
        """Return the placement of each binding according to its owner."""
        owned = [fold.state.bindings for member in self.workers for fold in member.folds]
        return {key: dict(binding.clusters) for bindings in owned for key, binding in bindings.items()}

    async def decided(self) -> dict[str, list[dict[str, int]]]:
        """Return the placements of each binding, decision by decision."""
        placements: dict[str, list[dict[str, int]]] = {}
        for shard in range(topics.SHARDS):
            for record in await self.story.log.read(topics.DECISIONS, shard, 0, 10_000):
                decoded = codec.decode(record)
                if isinstance(decoded, codec.Decoded) and isinstance(decoded.data, decisions.ScheduleDecided):
                    targets = {target.name: target.replicas for target in decoded.data.clusters}
                    placements.setdefault(decoded.data.key, []).append(targets)
        return placements
