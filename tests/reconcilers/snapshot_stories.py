"""Stories whose worker stores snapshots."""

from engine.log import port
from engine.reconcilers import snapshot_storage, worker
from tests.builders.inputs import deployment, joined, policy
from tests.builders.manifests import on
from tests.deciders.story import Story


def storage_of(kept: snapshot_storage.SnapshotStore | None) -> snapshot_storage.SnapshotStorage | None:
    return None if kept is None else snapshot_storage.SingleSnapshotStorage(kept)


async def begun(
    log: port.NumberedLog | None = None, kept: snapshot_storage.SnapshotStore | None = None
) -> Story:
    story = Story(log)
    story.worker = worker.Worker(story.log, story.clock, storage=storage_of(kept))
    await story.submit(joined("member1"), joined("member2"), policy("p", on("member1", "member2")))
    await story.submit(*(deployment(f"web{index}", 2) for index in range(20)))
    return story


async def restarted(story: Story, kept: snapshot_storage.SnapshotStore) -> None:
    story.worker = worker.Worker(story.log, story.clock, storage=storage_of(kept))
    await story.settle()
