"""Fixtures of stories and their clusters; after each test its log must verify, and rebuild to the same state."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from engine.proof import verification
from engine.reconcilers import replay
from events import rejections
from tests.deciders.story import Story

_REBUILT = (
    "bindings",
    "rebalancers",
    "placements",
    "needs",
    "removals",
    "departures",
    "number",
    "digest",
)


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    """A story with a new engine and an empty log."""
    new_story = Story()
    await new_story.worker.recover()
    yield new_story
    assert len(await new_story.recorded(rejections.InputRejected)) == new_story.refused
    report = await verification.verify(new_story.log)
    assert report.findings == []
    shards = (
        await replay.rebuild(new_story.log, [fold.state.shard for fold in new_story.worker.folds])
    ).shards
    for fold in new_story.worker.folds:
        rebuilt, _ = shards[fold.state.shard]
        for name in _REBUILT:
            alive, again = getattr(fold.state, name), getattr(rebuilt.state, name)
            assert _encoded(again) == _encoded(alive)


@pytest.fixture
async def two_members(story: Story) -> None:
    await story.join("member1", "member2")


@pytest.fixture
async def three_members(story: Story) -> None:
    await story.join("member1", "member2", "member3")


def _encoded(value: object) -> bytes:
    # Decoded first, because mappings with integer keys cannot be sorted by the encoder.
    return msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value)), order="deterministic")
