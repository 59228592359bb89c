"""Explanations: the numbers of a decision, and the facts it was based on."""

import pytest

from engine.http import summaries
from engine.placement.explain import ClusterExplanation, GroupExplanation
from engine.reconcilers import explanation
from engine.reconcilers.explanation_types import Explained
from events import attributes, clusters, decisions
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import capacity, deployment, joined, key, policy, rebalancer, ref, tainted
from tests.builders.manifests import AGGREGATED, DUPLICATED, DYNAMIC, EVEN, on
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = ("member1", "member2", "member3")


async def begun() -> Story:
    story = Story()
    await story.submit(*(joined(name) for name in MEMBERS))
    await story.submit(capacity("member1", 6), capacity("member2", 12), capacity("member3", 18))
    return story


async def explained(story: Story, at_number: int | None = None) -> Explained:
    explained_binding = await explanation.explain(story.log, WEB, at_number)
    assert explained_binding is not None
    return explained_binding


def group(explained_binding: Explained) -> GroupExplanation:
    assert explained_binding.explanation is not None
    return explained_binding.explanation.groups[-1]


def by_name(explained_binding: Explained) -> dict[str, ClusterExplanation]:
    return {cluster.name: cluster for cluster in group(explained_binding).clusters}


@pytest.mark.parametrize("scheduling", [DUPLICATED, EVEN, AGGREGATED, DYNAMIC])
async def test_explanation_has_the_numbers_of_the_decision(scheduling: Json) -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": scheduling}), deployment("web", 12, "1000m"))
    (decision,) = await story.recorded(decisions.ScheduleDecided)
    shown = await explained(story)
    assert shown.clusters == {target.name: target.replicas for target in decision.clusters}
    assert shown.excluded == decision.excluded
    assert (shown.trigger, shown.mode) == (decision.trigger, decision.mode)
    assert shown.requests == {"cpu": "1"}
    for name, cluster in by_name(shown).items():
        assert cluster.available == {"member1": 6, "member2": 12, "member3": 18}[name]
        assert (cluster.replicas or 0) == shown.clusters.get(name, 0)


@pytest.mark.parametrize(
    ("scheduling", "title"),
    [
        (DUPLICATED, "Clusters: 12 replicas in each cluster"),
        (EVEN, "Clusters: 12 replicas by static weights"),
        (AGGREGATED, "Clusters: scale up by 12 replicas"),
    ],
)
async def test_explanation_says_how_replicas_were_divided(scheduling: Json, title: str) -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": scheduling}), deployment("web", 12, "1000m"))
    assert summaries.group_title(group(await explained(story))) == title


async def test_kept_and_added_replicas_add_up() -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 12))
    await story.submit(deployment("web", 18))
    shown = await explained(story)
    assert shown.previous == {"member1": 2, "member2": 4, "member3": 6}
    (divided,) = group(shown).steps
    assert divided.seats == 6
    for name, cluster in by_name(shown).items():
        assert cluster.kept == shown.previous[name]
        assert cluster.replicas == shown.clusters[name]


async def test_explanation_names_every_filter_that_a_cluster_fails() -> None:
    story = await begun()
    await story.submit(tainted("member3", "NoSchedule"))
    await story.submit(policy("p", on("member1", scheduling=DYNAMIC)), deployment("web", 2))
    shown = await explained(story)
    assert [bool(cluster.failed) for cluster in by_name(shown).values()] == [False, True, True]
    assert len(by_name(shown)["member3"].failed) == 2


async def test_explanation_names_the_lack_of_capacity() -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 100))
    (failed,) = await story.recorded(decisions.ScheduleFailed)
    shown = await explained(story)
    assert (shown.condition, shown.message) == (failed.reason, failed.message)
    assert group(shown).error
    assert shown.clusters == {}


async def test_fresh_decision_counts_running_replicas_as_capacity() -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 12))
    await story.submit(rebalancer("demo", ref("web")))
    shown = await explained(story)
    assert (shown.mode, shown.trigger) == ("Fresh", "RescheduleTriggered")
    assert {name: cluster.weight for name, cluster in by_name(shown).items()} == {
        "member1": 8,
        "member2": 16,
        "member3": 24,
    }


async def test_earlier_decision_is_explained_by_the_facts_of_its_time() -> None:
    story = await begun()
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 12))
    then = story.log.last_number()
    await story.submit(capacity("member1", 100), deployment("web", 40))
    assert by_name(await explained(story))["member1"].allocatable == 100
    former = await explained(story, then)
    assert by_name(former)["member1"].allocatable == 6
    assert former.clusters == {"member1": 2, "member2": 4, "member3": 6}


async def test_explanation_names_its_step_in_the_log() -> None:
    story = await begun()
    await story.submit(policy("p"), deployment("web"))
    shown = await explained(story)
    (step,) = [
        taken
        for taken in await story.recorded(decisions.StepTaken)
        if (taken.shard, taken.number) == (shown.basis.shard, shown.basis.step)
    ]
    assert (step.ends, step.release) == (shown.basis.ends, shown.basis.release)


async def test_explanation_names_the_number_from_which_on_views_show_the_decision() -> None:
    story = await begun()
    await story.submit(policy("p"), deployment("web"))
    number = (await explained(story)).basis.number
    (dispatched,) = await story.log.read_all(number - 1, 1)

    assert attributes.get(dispatched, "type").endswith("binding-dispatched.v1")
    assert await explained(story, number) == await explained(story)


async def test_explanation_exists_from_the_record_of_the_decision_on() -> None:
    story = await begun()
    await story.submit(policy("p"), deployment("web"))
    (decided,) = [
        record.number
        for record in await story.log.read_all(0, 100)
        if attributes.get(record, "type").endswith("schedule-decided.v1")
    ]

    assert await explained(story, decided) == await explained(story)
    assert await explanation.explain(story.log, WEB, decided - 1) is None


async def test_explanation_of_a_deleted_workload_says_that_it_was_deleted() -> None:
    story = await begun()
    await story.submit(policy("p"), deployment("web"))
    assert not (await explained(story)).is_deleted
    await story.submit(inputs.deleted("web"))
    assert (await explained(story)).is_deleted


async def test_explanation_names_clusters_in_which_a_former_object_may_still_run() -> None:
    story = await begun()
    await story.submit(policy("p", on("member1")), deployment("web"))
    await story.submit(inputs.deleted("web"))
    assert (await explained(story)).former == ()
    await story.submit(policy("p", on("member1", "member2", scheduling=DUPLICATED)), deployment("web"))
    shown = await explained(story)
    assert (shown.former, shown.clusters) == (("member1",), {"member1": 1, "member2": 1})
    lines = list(summaries.further_lines(shown))
    assert ("Waits", "until the object of the deleted template is gone in member1") in lines
    await story.confirm_removal(WEB, "member1")
    assert (await explained(story)).former == ()


async def test_object_that_no_policy_places_and_nothing_needs_has_no_explanation() -> None:
    story = await begun()
    settings = key("settings", manifests.CONFIG_MAP)
    await story.submit(policy("own", on("member1"), manifests.selector("settings", manifests.CONFIG_MAP)))
    await story.submit(inputs.template("settings", manifests.CONFIG_MAP))
    await story.submit(inputs.policy_deleted("own"))
    await story.submit(clusters.ClusterLeaving(name="member1"))
    await story.submit(clusters.ClusterLeft(name="member1"))
    shown = await explanation.explain(story.log, settings)
    assert shown is not None
    assert (shown.condition, shown.is_deleted) == ("Unclaimed", False)
    await story.submit(policy("p", on("member2"), propagateDeps=True))
    await story.submit(inputs.referring("web", "ConfigMap/settings"))
    await story.submit(inputs.referring("web"))
    assert (await story.recorded(decisions.BindingWithdrawn, settings))[-1].reason == "NotRequired"
    assert await explanation.explain(story.log, settings) is None


async def test_undecided_binding_has_no_explanation() -> None:
    story = await begun()
    await story.submit(deployment("web"))
    assert await explanation.explain(story.log, WEB) is None


async def test_explaining_appends_nothing() -> None:
    story = await begun()
    await story.submit(policy("p"), deployment("web"))
    number = story.log.last_number()
    await explained(story)
    assert story.log.last_number() == number


async def test_explanation_names_the_dependents_of_an_object() -> None:
    story = await begun()
    settings, settings_key = (
        inputs.template("settings", manifests.CONFIG_MAP),
        key("settings", manifests.CONFIG_MAP),
    )
    placed = policy("p", on("member1", "member2", scheduling=DUPLICATED), propagateDeps=True)
    await story.submit(settings, placed, inputs.referring("web", "ConfigMap/settings"))
    shown = await explanation.explain(story.log, settings_key)
    assert shown is not None
    assert (shown.trigger, shown.clusters) == ("Required", {"member1": 0, "member2": 0})
    assert shown.required_by == {WEB: ("member1", "member2")}

    await story.submit(policy("own", on("member3"), manifests.selector("settings", manifests.CONFIG_MAP)))
    shown = await explanation.explain(story.log, settings_key)
    assert shown is not None
    assert shown.clusters == {"member3": 0}
    assert shown.required_by == {WEB: ("member1", "member2")}

    await story.submit(inputs.deleted("web"), inputs.deleted("settings", manifests.CONFIG_MAP))
    shown = await explanation.explain(story.log, settings_key)
    assert shown is not None
    assert shown.required_by == {}
