"""Every story is proved when it is over: computed again to the same bytes, rebuilt to the same state."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from engine.reconcilers import recovery, verification
from events import rejections
from tests.deciders.story import Story


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    """An engine that knows nothing yet."""
    told = Story()
    await told.worker.recover()
    yield told
    assert len(await told.told(rejections.InputRejected)) == told.refused
    report = await verification.verify(told.log)
    assert report.findings == []
    for fold in told.worker.folds:
        rebuilt, _ = await recovery.rebuilt(told.log, fold.state.shard)
        for name in ("bindings", "rebalancers", "placements", "needs", "number", "digest"):
            alive, again = getattr(fold.state, name), getattr(rebuilt.state, name)
            assert msgspec.json.encode(again, order="deterministic") == msgspec.json.encode(
                alive, order="deterministic"
            )
