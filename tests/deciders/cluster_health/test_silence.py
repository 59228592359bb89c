"""Clusters whose reporter misses its announced grace period."""

import pytest

from events import cluster_decisions, clusters
from tests.builders.inputs import health_reported, joined
from tests.deciders.story import Story


def status(story: Story) -> str | None:
    health = story.worker.facts.members["member1"].health
    return None if health is None else health.status


async def test_cluster_is_silenced_exactly_after_its_grace_seconds(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_ms(39_999)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    (silenced,) = await story.recorded(cluster_decisions.ClusterSilenced)
    assert (silenced.name, silenced.grace_seconds) == ("member1", 40)
    assert status(story) == "Unknown"


async def test_each_report_restarts_the_grace_time_without_a_step(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    steps = await story.steps()
    for _ in range(10):
        await story.pass_s(39)
        await story.submit(health_reported("member1", grace_s=40))
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    assert await story.steps() == steps


async def test_silence_is_reported_once_and_ends_with_the_next_report(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_s(1_000)
    await story.restart()
    await story.pass_s(1_000)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    await story.submit(health_reported("member1", grace_s=40))
    assert status(story) == "True"
    await story.pass_s(1_000)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 2


async def test_cluster_without_grace_seconds_is_never_silenced(story: Story) -> None:
    await story.pass_s(1_000_000)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []


async def test_concurrent_report_outranks_the_silence_before_it(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(health_reported("member1", grace_s=40))
    await story.settle()
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    assert status(story) == "True"


async def test_removed_cluster_is_not_silenced(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.submit(clusters.ClusterLeft(name="member1"))
    await story.pass_s(1_000)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []


@pytest.mark.parametrize("is_change", [True, False])
async def test_new_owner_waits_a_full_grace_time(story: Story, *, is_change: bool) -> None:
    # Reports during downtime of the control plane are lost, however healthy the clusters are. The former owner
    # took a step only if the last report was a change.
    await story.submit(health_reported("member1", ready=not is_change, grace_s=40))
    story.now_ms += 1_000_000
    await story.restart()
    await story.pass_ms(39_999)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1


async def test_silence_does_not_apply_to_a_rejoined_cluster(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(clusters.ClusterLeft(name="member1"), joined("member1"))
    await story.settle()
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    assert status(story) is None
