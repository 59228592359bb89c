"""The placements of a shard: those of former policies take no memory."""

import pytest

from engine.deciders import placement_cache
from events import keys
from tests.builders.inputs import capacity, deployment, joined, policy
from tests.builders.manifests import on
from tests.deciders.story import Story

WEB = keys.binding_key("Deployment", "default", "web")


async def test_placements_that_no_binding_uses_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_cache, "_COUNT_MIN", 3)
    story = Story()
    await story.submit(joined("member1"), capacity("member1"), deployment("web", 1))
    state = story.worker.folds[keys.shard_of(WEB)].state
    counts: list[int] = []
    for number in range(12):
        await story.submit(policy("p", on("member1", f"other{number}")))
        counts.append(len(state.placements))
    assert counts[0] == 1
    assert max(counts) == 3
    await story.submit(deployment("web", 2))
    assert story.binding(WEB).clusters == (("member1", 2),)
