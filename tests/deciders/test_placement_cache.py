"""The placements of a shard: those of former policies take no memory."""

import pytest

from engine.deciders import placement_cache
from events import keys
from tests.builders.inputs import capacity, deployment, joined, policy, policy_deleted
from tests.builders.manifests import on, selector
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


async def test_placement_of_a_deleted_policy_stays_while_its_binding_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placement_cache, "_COUNT_MIN", 1)
    story = Story()
    # Another scheduler: the placement is claimed, but never applied.
    await story.submit(joined("member1"), policy("p", on("member1"), schedulerName="other"))
    await story.submit(deployment("web", 1))
    await story.submit(policy_deleted("p"))
    shard = keys.shard_of(WEB)
    names = (f"web{number}" for number in range(1_000))
    other = next(
        name for name in names if keys.shard_of(keys.binding_key("Deployment", "default", name)) == shard
    )
    await story.submit(deployment(other, 1))
    for number in range(4):
        await story.submit(policy("q", on("member1", f"other{number}"), selector(name=other)))
    await story.submit(deployment("web", 2))
    released = story.binding(WEB).released
    assert released is not None
    assert released.placement in story.worker.folds[shard].state.placements
