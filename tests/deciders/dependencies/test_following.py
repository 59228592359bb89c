"""Dependencies follow their workload, and are removed with it."""

from events import decisions, links, works
from tests.builders.inputs import deleted, key, policy, policy_deleted, referring, template
from tests.builders.manifests import CONFIG_MAP, on, selector
from tests.deciders.dependencies.objects import (
    KEYS,
    SETTINGS,
    WEB,
    clusters_running,
    required_by,
    secret,
    settings_map,
    with_deps,
)
from tests.deciders.story import Story


async def test_dependencies_follow_their_workload(story: Story) -> None:
    await story.submit(settings_map(), secret(), template("other", CONFIG_MAP))
    await story.submit(with_deps("member1", "member2"), referring("web", "ConfigMap/settings", "Secret/keys"))
    assert (
        await clusters_running(story, SETTINGS)
        == await clusters_running(story, KEYS)
        == ["member1", "member2"]
    )
    assert await required_by(story, SETTINGS) == {WEB: ("member1", "member2")}
    assert await clusters_running(story, key("other", CONFIG_MAP)) == []


async def test_dependencies_are_not_sent_without_propagate_deps(story: Story) -> None:
    await story.submit(policy("p", on("member1")), settings_map(), referring("web", "ConfigMap/settings"))
    assert await clusters_running(story, SETTINGS) == []
    assert await story.recorded(links.DependencyNeeded) == []


async def test_propagate_deps_can_be_switched_on_and_off(story: Story) -> None:
    await story.submit(policy("p", on("member1")), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(with_deps("member1"))
    assert await clusters_running(story, SETTINGS) == ["member1"]
    await story.submit(policy("p", on("member1")))
    assert await clusters_running(story, SETTINGS) == []
    assert await clusters_running(story, WEB) == ["member1"]


async def test_missing_dependency_is_waited_for(story: Story) -> None:
    await story.submit(with_deps("member1"), referring("web", "ConfigMap/settings"))
    assert not story.is_known(SETTINGS)
    await story.restart()
    await story.submit(settings_map())
    assert await clusters_running(story, SETTINGS) == ["member1"]


async def test_deleted_dependency_is_removed_and_sent_again_when_recreated(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(deleted("settings", CONFIG_MAP))
    assert await clusters_running(story, SETTINGS) == []
    await story.confirm_removal(SETTINGS, "member1")
    await story.submit(settings_map("2"))
    assert await clusters_running(story, SETTINGS) == ["member1"]


async def test_dependency_that_is_recreated_at_once_gets_new_works(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(deleted("settings", CONFIG_MAP), settings_map())
    assert await clusters_running(story, SETTINGS) == []
    await story.confirm_removal(SETTINGS, "member1")
    assert await clusters_running(story, SETTINGS) == ["member1"]


async def test_edits_of_a_dependency_reach_the_members(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(settings_map("2"))
    applied = [work for work in await story.recorded(works.WorkApplied, "member1") if work.key == SETTINGS]
    assert len({work.digest for work in applied}) == len(applied) == 2


async def test_removed_reference_withdraws_the_dependency(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), secret())
    await story.submit(referring("web", "ConfigMap/settings", "Secret/keys"))
    await story.submit(referring("web", "Secret/keys"))
    assert await clusters_running(story, SETTINGS) == []
    assert await clusters_running(story, KEYS) == ["member1"]
    assert (await story.recorded(decisions.BindingWithdrawn, SETTINGS))[-1].reason == "NotRequired"
    assert len(await story.recorded(links.DependencyNeeded)) == 2, "who stays is told nothing"


async def test_deleted_workload_removes_its_dependencies(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(deleted("web"))
    assert await clusters_running(story, SETTINGS) == []
    assert not story.is_known(WEB)
    assert not any(fold.state.needs for fold in story.worker.folds)


async def test_preserved_workload_keeps_its_dependencies(story: Story) -> None:
    await story.submit(with_deps("member1", preserves=True), settings_map())
    await story.submit(referring("web", "ConfigMap/settings"))
    await story.submit(deleted("web"))
    removed = await story.recorded(works.WorkRemoved, "member1")
    assert {(work.key, work.preserved) for work in removed} == {(WEB, True), (SETTINGS, True)}


async def test_dependency_is_overwritten_and_preserved_if_one_of_its_workloads_requires_it(
    story: Story,
) -> None:
    await story.submit(
        with_deps("member1", name="a", of="web", preserves=True, conflict="Overwrite"),
        with_deps("member1", name="b", of="api"),
        settings_map(),
        referring("web", "ConfigMap/settings"),
        referring("api", "ConfigMap/settings"),
    )
    newest = (await story.recorded(works.WorkApplied, "member1"))[-1]
    assert (newest.key, newest.overwrites) == (SETTINGS, True)

    await story.submit(with_deps("member1", name="a", of="web"))
    newest = (await story.recorded(works.WorkApplied, "member1"))[-1]
    assert (newest.key, newest.overwrites) == (SETTINGS, False)
    assert await story.running(SETTINGS)

    await story.submit(with_deps("member1", name="b", of="api", preserves=True))
    await story.submit(deleted("settings", CONFIG_MAP))
    removed = (await story.recorded(works.WorkRemoved, "member1"))[-1]
    assert (removed.key, removed.preserved) == (SETTINGS, True)


async def test_policy_of_the_dependency_itself_decides_how_it_is_kept(story: Story) -> None:
    own = policy("own", on("member1"), selector("settings", kind=CONFIG_MAP))
    await story.submit(with_deps("member1", of="web", preserves=True, conflict="Overwrite"), own)
    await story.submit(settings_map(), referring("web", "ConfigMap/settings"))
    newest = [work for work in await story.recorded(works.WorkApplied, "member1") if work.key == SETTINGS][-1]
    assert not newest.overwrites
    await story.submit(deleted("settings", CONFIG_MAP))
    removed = (await story.recorded(works.WorkRemoved, "member1"))[-1]
    assert (removed.key, removed.preserved) == (SETTINGS, False)


async def test_unclaimed_workload_keeps_its_dependencies(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(policy_deleted("p"))
    assert await clusters_running(story, WEB) == await clusters_running(story, SETTINGS) == ["member1"]
    await story.submit(deleted("web"))
    assert await clusters_running(story, SETTINGS) == []
