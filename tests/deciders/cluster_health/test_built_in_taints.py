"""Taints without policies: clusters that are not ready or unreachable."""

from engine.deciders import cluster_health
from tests.builders.inputs import deployment, health_reported, key, policy
from tests.builders.manifests import on
from tests.deciders.cluster_health.fleet import (
    CONFIRM_S,
    MEMBERS,
    NOT_READY,
    UNREACHABLE,
    WEB,
    built_in_taints,
)
from tests.deciders.story import Story


async def test_new_workloads_avoid_unready_clusters_and_running_ones_stay(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS)), deployment("web", 1))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert built_in_taints(story) == {}
    await story.pass_ms(1)
    assert built_in_taints(story) == {"member1": [NOT_READY]}
    await story.submit(policy("q", on(*MEMBERS)), deployment("late", 1))
    assert set(story.placed(key("late"))) == {*MEMBERS} - {"member1"}
    assert set(story.placed(WEB)) == {*MEMBERS}
    await story.submit(health_reported("member1"))
    await story.pass_s(CONFIRM_S)
    assert built_in_taints(story) == {}


async def test_silent_cluster_is_unreachable_at_once_and_not_ready_later(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_s(40)
    assert built_in_taints(story) == {"member1": [UNREACHABLE]}
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    assert built_in_taints(story) == {"member1": [NOT_READY]}


async def test_ready_clusters_without_taints_cost_no_step(story: Story) -> None:
    steps = await story.steps()
    await story.pass_s(10 * CONFIRM_S)
    assert await story.steps() == steps
