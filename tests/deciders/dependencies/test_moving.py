"""Dependencies move when their workload is scheduled again, evicted, or loses a cluster."""

from events import links
from tests.builders import inputs
from tests.builders.inputs import policy, policy_deleted, rebalancer, ref, referring, tainted
from tests.builders.manifests import DUPLICATED, EVEN, on
from tests.deciders.dependencies.objects import (
    SETTINGS,
    WEB,
    clusters_running,
    required_by,
    settings_map,
    with_deps,
)
from tests.deciders.story import Story


async def test_dependencies_move_with_their_workload(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(with_deps("member2", "member3"))
    assert await clusters_running(story, SETTINGS) == ["member2", "member3"]
    assert await required_by(story, SETTINGS) == {WEB: ("member2", "member3")}


async def test_rescheduling_moves_dependencies(story: Story) -> None:
    divided = policy("p", on("member1", "member2", scheduling=EVEN), propagateDeps=True)
    await story.submit(settings_map(), tainted("member2", "NoSchedule"))
    await story.submit(divided, referring("web", "ConfigMap/settings", replicas=2))
    assert await clusters_running(story, SETTINGS) == ["member1"]
    await story.submit(inputs.untainted("member2"), rebalancer("again", ref("web")))
    assert (
        await clusters_running(story, WEB)
        == await clusters_running(story, SETTINGS)
        == ["member1", "member2"]
    )


async def test_scaling_sends_no_links(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(referring("web", "ConfigMap/settings", replicas=7))
    assert len(await story.recorded(links.DependencyNeeded)) == 1
    assert await story.replicas(WEB) == {"member1": 7}


async def test_dependency_stays_during_a_graceful_eviction(story: Story) -> None:
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    placement = on("member1", "member2", scheduling=DUPLICATED, spreadConstraints=spread)
    await story.submit(policy("p", placement, propagateDeps=True), settings_map())
    await story.submit(referring("web", "ConfigMap/settings"))
    (first,) = await clusters_running(story, WEB)
    (second,) = {"member1", "member2"} - {first}
    await story.report(WEB, first)
    await story.submit(tainted(first, "NoExecute"))
    assert story.placed(WEB) == {second: 1}
    assert (
        await clusters_running(story, WEB)
        == await clusters_running(story, SETTINGS)
        == ["member1", "member2"]
    )
    await story.report(WEB, second)
    await story.pass_s(1)
    assert await clusters_running(story, WEB) == await clusters_running(story, SETTINGS) == [second]


async def test_evicted_unclaimed_workload_is_removed_with_its_dependencies(story: Story) -> None:
    await story.submit(with_deps("member1", "member2"), settings_map())
    await story.submit(referring("web", "ConfigMap/settings"))
    await story.submit(tainted("member2", "NoExecute"))
    await story.submit(policy_deleted("p"))
    assert (
        await clusters_running(story, WEB)
        == await clusters_running(story, SETTINGS)
        == ["member1", "member2"]
    )
    await story.pass_s(601)
    assert await clusters_running(story, WEB) == await clusters_running(story, SETTINGS) == ["member1"]


async def test_removed_cluster_is_dropped_from_dependencies(story: Story) -> None:
    await story.submit(
        with_deps("member1", "member2"), settings_map(), referring("web", "ConfigMap/settings")
    )
    await story.submit(inputs.clusters.ClusterLeft(name="member2"))
    assert await clusters_running(story, SETTINGS) == ["member1"]
