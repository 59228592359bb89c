"""The fixture of stories; after each test its log must verify, and rebuild to the same state."""

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
    told = Story()
    await told.worker.recover()
    yield told
    assert len(await told.recorded(rejections.InputRejected)) == told.refused
    report = await verification.verify(told.log)
    assert report.findings == []
    shards = (await replay.rebuild(told.log, [fold.state.shard for fold in told.worker.folds])).shards
    for fold in told.worker.folds:
        rebuilt, _ = shards[fold.state.shard]
        for name in _REBUILT:
            alive, again = getattr(fold.state, name), getattr(rebuilt.state, name)
            assert _encoded(again) == _encoded(alive)


def _encoded(value: object) -> bytes:
    # Decoded first, because mappings with integer keys cannot be sorted by the encoder.
    return msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value)), order="deterministic")
