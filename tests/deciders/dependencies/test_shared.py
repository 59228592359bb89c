"""Dependencies that several workloads share, or that have their own policy, overrides and status."""

from msgspec import structs

from events import decisions, works
from tests.builders.inputs import deleted, key, override, policy, policy_deleted, referring, template
from tests.builders.manifests import CONFIG_MAP, images, on, selector
from tests.deciders.dependencies.objects import (
    SETTINGS,
    WEB,
    clusters_running,
    required_by,
    settings_map,
    with_deps,
)
from tests.deciders.story import Story


async def test_two_workloads_share_a_dependency(story: Story) -> None:
    await story.submit(
        settings_map(), with_deps("member1", of="web"), with_deps("member2", name="q", of="api")
    )
    await story.submit(referring("web", "ConfigMap/settings"), referring("api", "ConfigMap/settings"))
    assert await clusters_running(story, SETTINGS) == ["member1", "member2"]
    assert await required_by(story, SETTINGS) == {WEB: ("member1",), key("api"): ("member2",)}
    await story.submit(deleted("web"))
    assert await clusters_running(story, SETTINGS) == ["member2"]
    await story.submit(deleted("api"))
    assert await clusters_running(story, SETTINGS) == []


async def test_orphaned_workload_keeps_running_with_its_dependencies(story: Story) -> None:
    await story.submit(settings_map(), with_deps("member1"), referring("web", "ConfigMap/settings"))
    await story.submit(structs.replace(deleted("web"), orphans=True))
    assert not story.is_known(WEB)
    removed = await story.recorded(works.WorkRemoved)
    assert {(work.key, work.preserved) for work in removed} == {(WEB, True), (SETTINGS, True)}


async def test_own_policy_and_dependents_place_a_dependency_together(story: Story) -> None:
    own = policy("own", on("member3"), selector("settings", CONFIG_MAP))
    await story.submit(own, settings_map(), with_deps("member1"), referring("web", "ConfigMap/settings"))
    assert await clusters_running(story, SETTINGS) == ["member1", "member3"]
    assert story.placed(SETTINGS) == {"member3": 0}
    await story.submit(with_deps("member2"))
    assert await clusters_running(story, SETTINGS) == ["member2", "member3"]
    await story.submit(deleted("web"))
    assert await clusters_running(story, SETTINGS) == ["member3"]
    assert await story.recorded(decisions.BindingWithdrawn, SETTINGS) == []


async def test_own_policy_of_a_dependency_can_be_added_and_removed(story: Story) -> None:
    await story.submit(settings_map(), with_deps("member1"), referring("web", "ConfigMap/settings"))
    await story.submit(policy("own", on("member3"), selector("settings", CONFIG_MAP)))
    assert await clusters_running(story, SETTINGS) == ["member1", "member3"]
    await story.submit(policy_deleted("own"))
    assert await clusters_running(story, SETTINGS) == ["member1", "member3"], "what runs stays"
    await story.submit(settings_map("2"), deleted("web"))
    assert await clusters_running(story, SETTINGS) == ["member3"]


async def test_suspended_dependency_is_not_dispatched_to_dependents(story: Story) -> None:
    own = policy("own", on("member3"), selector("settings", CONFIG_MAP), suspension={"dispatching": True})
    await story.submit(own, settings_map(), with_deps("member1"), referring("web", "ConfigMap/settings"))
    assert await clusters_running(story, SETTINGS) == ["member1", "member3"]
    assert all(work.suspended for work in (await story.running(SETTINGS)).values())


async def test_overrides_apply_to_dependencies(story: Story) -> None:
    rule = images("v2", clusterNames=["member1"])
    await story.submit(
        settings_map(), with_deps("member1", "member2"), referring("web", "ConfigMap/settings")
    )
    await story.submit(override("o", rule, selectors=[selector("settings", CONFIG_MAP)]))
    last = {
        work.cluster: [override_ref.name for override_ref in work.overrides]
        for work in await story.recorded(works.WorkApplied)
        if work.key == SETTINGS
    }
    assert last == {"member1": ["o"], "member2": []}


async def test_status_of_a_dependency_is_aggregated(story: Story) -> None:
    await story.submit(
        settings_map(), with_deps("member1", "member2"), referring("web", "ConfigMap/settings")
    )
    await story.report(SETTINGS, "member1")
    assert not (await story.recorded(decisions.StatusAggregated, SETTINGS))[-1].fully_applied
    await story.report(SETTINGS, "member2")
    shown = (await story.recorded(decisions.StatusAggregated, SETTINGS))[-1]
    assert [member.cluster for member in shown.members] == ["member1", "member2"]
    assert shown.fully_applied


async def test_object_of_another_api_group_is_not_a_dependency(story: Story) -> None:
    await story.submit(with_deps("member1"), referring("web", "ConfigMap/settings"))
    await story.submit(template("settings", ("example.io/v1", "ConfigMap")))
    assert await clusters_running(story, SETTINGS) == []


async def test_withdrawn_binding_continues_with_the_next_generation(story: Story) -> None:
    await story.submit(settings_map(), with_deps("member1"), referring("web", "ConfigMap/settings"))
    await story.submit(deleted("web"))
    await story.submit(policy("own", on("member3"), selector("settings", CONFIG_MAP)))
    assert (await story.recorded(decisions.ScheduleDecided, SETTINGS))[-1].generation == 2
    assert story.binding(SETTINGS).generation == 3
