"""Every story is proved when it is over: computed again to the same bytes, rebuilt to the same state."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from engine.reconcilers import recovery, verification
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
    """An engine that knows nothing yet."""
    told = Story()
    await told.worker.recover()
    yield told
    assert len(await told.told(rejections.InputRejected)) == told.refused
    report = await verification.verify(told.log)
    assert report.findings == []
    for fold in told.worker.folds:
        rebuilt, _ = await recovery.rebuilt(told.log, fold.state.shard)
        for name in _REBUILT:
            alive, again = getattr(fold.state, name), getattr(rebuilt.state, name)
            assert _encoded(again) == _encoded(alive)


def _encoded(value: object) -> bytes:
    # Read back first, since keys that are numbers can't be put in order.
    return msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value)), order="deterministic")
