"""``propagateDeps``: dependencies follow their workloads, and are removed where no workload needs them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import decisions, keys, limits, links, rejections, shapes, works
from events.json_values import Json
from tests.builders import inputs
from tests.builders.inputs import (
    capacity,
    deleted,
    joined,
    key,
    override,
    policy,
    policy_deleted,
    rebalancer,
    ref,
    referring,
    tainted,
    template,
)
from tests.builders.manifests import CONFIG_MAP, DUPLICATED, EVEN, SECRET, images, on, selector
from tests.deciders.story import Story

SETTINGS = key("settings", CONFIG_MAP)
KEYS = key("keys", SECRET)
WEB = key("web")
MEMBERS = ("member1", "member2", "member3")


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    await story.submit(*(joined(name) for name in MEMBERS))
    await story.submit(*(capacity(name) for name in MEMBERS))


def with_deps(
    *clusters: str, name: str = "p", of: str = "", preserves: bool = False, conflict: str = "Abort"
) -> shapes.Event:
    """A policy that places Deployments (or one) on these clusters with their dependencies."""
    selectors = [selector(of)] if of else []
    placement = on(*clusters, scheduling=DUPLICATED)
    return policy(
        name,
        placement,
        *selectors,
        propagateDeps=True,
        preserveResourcesOnDeletion=preserves,
        conflictResolution=conflict,
    )


def settings_map(value: str = "1") -> shapes.Event:
    return template("settings", CONFIG_MAP, fields={"data": {"a": value}})


def secret() -> shapes.Event:
    return template("keys", SECRET, fields={"data": {}})


async def clusters_running(story: Story, about: str) -> list[str]:
    """Return the clusters that run an object, according to their works."""
    return sorted(await story.running(about))


async def required_by(story: Story, about: str) -> dict[str, tuple[str, ...]]:
    """Return which binding needs an object in which clusters, from the newest decision."""
    found: dict[str, tuple[str, ...]] = {}
    for told in await story.recorded(decisions.BindingRequired, about):
        found |= {f"{each.namespace}/{each.name}": each.clusters for each in told.required_by}
    return {by: clusters for by, clusters in found.items() if clusters}


# --- following the workload ---


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
    await story.submit(settings_map("2"))
    assert await clusters_running(story, SETTINGS) == ["member1"]


async def test_edits_of_a_dependency_reach_the_members(story: Story) -> None:
    await story.submit(with_deps("member1"), settings_map(), referring("web", "ConfigMap/settings"))
    await story.submit(settings_map("2"))
    told = [work for work in await story.recorded(works.WorkApplied, "member1") if work.key == SETTINGS]
    assert len({work.digest for work in told}) == len(told) == 2


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
    newest = [each for each in await story.recorded(works.WorkApplied, "member1") if each.key == SETTINGS][-1]
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


# --- moving ---


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


# --- shared, and with their own policy ---


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
    assert all(each.suspended for each in (await story.running(SETTINGS)).values())


async def test_overrides_apply_to_dependencies(story: Story) -> None:
    rule = images("v2", clusterNames=["member1"])
    await story.submit(
        settings_map(), with_deps("member1", "member2"), referring("web", "ConfigMap/settings")
    )
    await story.submit(override("o", rule, selectors=[selector("settings", CONFIG_MAP)]))
    last = {
        work.cluster: [each.name for each in work.overrides]
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
    assert [each.cluster for each in shown.members] == ["member1", "member2"]
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


# --- many ---


async def test_dependency_of_many_workloads_is_decided_in_records_of_bounded_size(story: Story) -> None:
    """Otherwise a Secret needed by a whole namespace would exceed the record limit and stop its shard."""
    count, clusters = 90, tuple(f"member{number}" for number in range(100))
    await story.submit(settings_map(), *(needed(f"default/w{each}", 1, *clusters) for each in range(count)))
    told = await story.recorded(decisions.BindingRequired, SETTINGS)
    assert len(told) > 1
    assert all(sum(len(each.clusters) for each in some.required_by) <= 4096 for some in told)
    assert len(await required_by(story, SETTINGS)) == count
    await story.submit(needed("default/w0", 2, "member1"))
    last = (await story.recorded(decisions.BindingRequired, SETTINGS))[-1]
    assert [each.name for each in last.required_by] == ["w0"], "who needs it as before is not named again"


# --- links ---


def needed(by: str, number: int, *clusters: str) -> shapes.Event:
    """A link from another shard; without clusters, the need ends."""
    wanted = ref("settings", CONFIG_MAP)
    if not clusters:
        return links.DependencyDropped(dependency=wanted, by=by, number=number)
    return links.DependencyNeeded(dependency=wanted, by=by, number=number, clusters=clusters)


async def test_newest_need_wins_and_repeated_links_are_ignored(story: Story) -> None:
    await story.submit(settings_map(), needed("default/a", 5, "member1"))
    await story.submit(needed("default/a", 4, "member2"), needed("default/a", 5, "member3"))
    assert await clusters_running(story, SETTINGS) == ["member1"]
    await story.submit(needed("default/b", 1), needed("default/a", 3))
    assert await clusters_running(story, SETTINGS) == ["member1"]
    state = story.worker.folds[keys.shard_of(SETTINGS)].state
    assert state.counters.needs_ignored == 4


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (needed("other/a", 1, "member1"), "by"),
        (needed("a-deployment", 1), "by"),
        (needed("default/-", 1, "member1"), "by"),
        (needed("default/a", 1, "member1", ""), "clusters"),
        (needed("default/a", 1, "Not/A/Name"), "clusters"),
        (
            links.DependencyNeeded(
                dependency=shapes.WorkloadRef(
                    api_version="", kind="ConfigMap", name="x", namespace="default"
                ),
                by="default/a",
                number=1,
                clusters=("member1",),
            ),
            "dependency.apiVersion",
        ),
    ],
)
async def test_invalid_links_are_refused(story: Story, said: shapes.Event, field: str) -> None:
    story.refused = 1
    await story.submit(said)
    (refused,) = await story.recorded(rejections.InputRejected)
    assert refused.field == field


@settings(max_examples=10, deadline=None)
@given(
    said=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.sets(st.sampled_from(MEMBERS))), max_size=8
    ),
    data=st.data(),
)
async def test_order_of_links_does_not_matter(
    said: list[tuple[str, int, set[str]]], data: st.DataObject
) -> None:
    """Links of one binding arrive in order; links of several bindings arrive in any order."""
    distinct = {(by, number): clusters for by, number, clusters in said}
    newest = {by: clusters for (by, _), clusters in sorted(distinct.items())}
    waiting = {by: sorted(number for each, number in distinct if each == by) for by in newest}
    told = Story()
    await told.worker.recover()
    await told.submit(*(joined(name) for name in MEMBERS), settings_map())
    while left := sorted(by for by, numbers in waiting.items() if numbers):
        by = data.draw(st.sampled_from(left))
        number = waiting[by].pop(0)
        await told.submit(needed(f"default/{by}", number, *sorted(distinct[by, number])))
    wanted = {name for clusters in newest.values() for name in clusters}
    assert await clusters_running(told, SETTINGS) == sorted(wanted)


async def test_dependency_records_respect_the_record_limit(story: Story) -> None:
    await story.submit(with_deps("member1"))
    secrets = [{"secretRef": {"name": f"s{index}"}} for index in range(30_000)]
    containers: list[Json] = [{"name": "main", "image": "nginx", "envFrom": secrets}]
    spec: Json = {"replicas": 1, "template": {"spec": {"containers": containers}}}

    await story.submit(template("web", fields={"spec": spec}))

    (told,) = await story.recorded(decisions.DependenciesDistributed, WEB)
    assert len(told.dependencies) == limits.DEPENDENCIES_MAX
    written = await story.log.read_all(0, story.log.last_number())
    assert max(len(record.value) for record in written) < limits.RECORD_BYTES_MAX
    assert await clusters_running(story, WEB) == ["member1"]
