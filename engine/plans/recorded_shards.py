"""The shards of a log as recorded, before an engine owns them; they can be updated as the log grows."""

from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.plans import fork_log
from engine.reconcilers import recovery, replay, snapshot_storage, snapshots
from events import topics


class RecordedShards:
    """All shards as recorded at a fork, rebuilt from the log and the newest snapshots in ``storage``, if any."""

    def __init__(self, storage: snapshot_storage.SnapshotStorage | None = None) -> None:
        self._storage = storage
        self._replays: list[replay.Replay] = []

    @property
    def shards(self) -> dict[int, tuple[ShardFold, Facts]]:
        """The fold of each shard, with the facts that the shard has seen; several shards may share one ``Facts``."""
        return {shard: result for group in self._replays for shard, result in group.shards.items()}

    @property
    def folds(self) -> list[ShardFold]:
        return [fold for _, (fold, _) in sorted(self.shards.items())]

    async def follow(self, log: fork_log.ForkLog) -> None:
        """Replay the steps between the last call and the end of a fork; raises the log's errors.

        The fork must not end earlier than the fork of the last call.
        """
        if not self._replays:
            shards, newest = range(topics.SHARDS), dict[int, snapshots.Snapshot]()
            if self._storage is not None:
                newest = await snapshots.newest_of_shards(log, self._storage, shards, discards=False)
            self._replays = await replay.rebuild_all(log, shards, newest)
        else:
            for group in self._replays:
                group.continue_in(log)
                await replay.apply(group)
        for group in self._replays:
            for error in group.unreadable.values():
                raise error

    async def newest_facts(self, log: fork_log.ForkLog) -> Facts:
        """Return the facts at the end of a fork, including those after the last step."""
        _, facts = self.shards[0]
        ends = {topic: log.ends().get((topic, 0), 0) for topic in topics.FACT_TOPICS}
        if ends == facts.ends:
            return facts
        facts = facts.copy()
        for topic, end in ends.items():
            await recovery.follow_facts(log, [], facts, topic, end)
        return facts
