"""Override policies: the works that clusters receive, when, and the order of rules."""

import pytest

from events import clusters, decisions, works
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    joined,
    key,
    override,
    override_deleted,
    policy,
    policy_deleted,
    tainted,
    template,
)
from tests.builders.manifests import CONFIG_MAP, DUPLICATED, DYNAMIC, images, on, selector
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=DUPLICATED)
TIERED = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.submit(*(joined(name, {"in": name}) for name in ("member1", "member2")))
    await story.submit(*(capacity(name) for name in ("member1", "member2")))


async def placed(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2, labels={"app": "web"}))


async def applied_overrides(story: Story, cluster: str, binding_key: str = WEB) -> list[list[str]]:
    """Return, for each work of a cluster, the applied policies with the indexes of their rules."""
    return [
        [f"{override_ref.name}{list(override_ref.rules)}" for override_ref in work.overrides]
        for work in await story.recorded(works.WorkApplied, cluster)
        if work.key == binding_key
    ]


# --- which ---


async def test_existing_override_applies_from_the_first_work_on(story: Story) -> None:
    await story.submit(override("o", images("v2")))
    await placed(story)
    assert await applied_overrides(story, "member1") == [["o[0]"]]
    assert await applied_overrides(story, "member2") == [["o[0]"]]


async def test_rules_apply_to_their_target_clusters(story: Story) -> None:
    await story.submit(
        override(
            "o",
            images("a", clusterNames=["member1"]),
            images("b", exclude=["member1"]),
            images("c", labelSelector={"matchLabels": {"in": "member1"}}),
            images("d"),
        )
    )
    await placed(story)
    assert await applied_overrides(story, "member1") == [["o[0, 2, 3]"]]
    assert await applied_overrides(story, "member2") == [["o[1, 3]"]]


async def test_deprecated_overriders_apply_without_a_list_of_rules(story: Story) -> None:
    overriders = {"plaintext": [{"path": "/metadata/labels/a", "operator": "add", "value": "b"}]}
    await story.submit(
        override("o", spec={"targetCluster": {"clusterNames": ["member2"]}, "overriders": overriders})
    )
    await placed(story)
    assert await applied_overrides(story, "member1") == [[]]
    assert await applied_overrides(story, "member2") == [["o[0]"]]


@pytest.mark.parametrize(
    ("selectors", "namespace", "holds"),
    [
        ([selector("web")], "default", True),
        ([selector("other")], "default", False),
        ([{"apiVersion": "apps/v1", "kind": "Deployment"}], "default", True),
        ([{"apiVersion": "apps/v1", "kind": "StatefulSet"}], "default", False),
        ([{**selector(), "labelSelector": {"matchLabels": {"app": "web"}}}], "default", True),
        ([{**selector(), "labelSelector": {"matchLabels": {"app": "db"}}}], "default", False),
        ([{**selector(), "labelSelector": {"matchLabels": {"app": "web"}, **TIERED}}], "default", False),
        ([{**selector("web"), "namespace": "elsewhere"}], "default", False),
        ([], "default", True),
        (None, "default", True),
        (None, "elsewhere", False),
        (None, "", True),
        ([{**selector("web"), "namespace": "default"}], "", True),
        ([{**selector("web"), "namespace": "elsewhere"}], "", False),
    ],
)
async def test_selectors_choose_templates(
    story: Story, selectors: list[dict[str, object]] | None, namespace: str, *, holds: bool
) -> None:
    await story.submit(override("o", images("v2"), selectors=selectors, namespace=namespace))
    await placed(story)
    assert await applied_overrides(story, "member1") == [["o[0]"] if holds else []]


async def test_more_specific_overrides_apply_later_and_namespaced_ones_last(story: Story) -> None:
    labelled = [{**selector(), "labelSelector": {"matchLabels": {"app": "web"}}}]
    await story.submit(
        override("b-all", images("1")),
        override("a-all", images("2"), selectors=[selector()]),
        # Of several selectors that match, the most specific one decides.
        override("a-named", images("3"), selectors=[selector("web"), selector()]),
        override("a-labelled", images("4"), selectors=[selector(), *labelled]),
        override("z-cluster", images("5"), namespace=""),
        override("a-cluster", images("6"), namespace="", selectors=[selector("web")]),
    )
    await placed(story)
    order = ["z-cluster[0]", "a-cluster[0]", "a-all[0]", "b-all[0]", "a-labelled[0]", "a-named[0]"]
    assert await applied_overrides(story, "member1") == [order]


async def test_cluster_scoped_object_is_changed_by_cluster_overrides_only(story: Story) -> None:
    role = ("rbac.authorization.k8s.io/v1", "ClusterRole")
    await story.submit(
        override("in", images("1")),
        override("all", images("2"), namespace=""),
        policy("p", BOTH, selector("r", role), namespace=""),
        template("r", role),
    )
    assert await applied_overrides(story, "member1", key("r", role)) == [["all[0]"]]


# --- when ---


async def test_created_changed_and_deleted_override_reaches_its_targets(story: Story) -> None:
    await placed(story)
    await story.submit(override("o", images("v2", clusterNames=["member1"])))
    await story.submit(override("o", images("v3", clusterNames=["member1"])))
    await story.submit(override_deleted("o"))
    assert await applied_overrides(story, "member1") == [[], ["o[0]"], ["o[0]"], []]
    assert await applied_overrides(story, "member2") == [[]]
    _, second, third, last = await story.recorded(works.WorkApplied, "member1")
    assert second.overrides[0].digest != third.overrides[0].digest
    assert second.overrides[0].offset < third.overrides[0].offset
    assert last.overrides == ()
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_override_with_a_repeated_selector_can_be_changed(story: Story) -> None:
    await story.submit(override("o", images("v2"), selectors=[selector("web"), selector("web")]))
    await placed(story)
    await story.submit(override("o", images("v3")))
    await story.submit(override_deleted("o"))
    assert await applied_overrides(story, "member1") == [["o[0]"], ["o[0]"], []]


async def test_rewritten_override_dispatches_nothing(story: Story) -> None:
    await story.submit(override("o", images("v2")))
    await placed(story)
    await story.submit(override("o", images("v2")))
    await story.submit(override("o", images("v2"), selectors=[selector("web")]))
    assert len(await applied_overrides(story, "member1")) == 1


async def test_override_without_a_match_dispatches_nothing(story: Story) -> None:
    await placed(story)
    await story.submit(
        override("o", images("v2"), selectors=[selector("other")]),
        override("o", images("v2"), namespace="elsewhere"),
        override("c", images("v2", clusterNames=["member7"]), namespace=""),
        override("e", {"overriders": {}}),
    )
    assert await applied_overrides(story, "member1") == [[]]


async def test_label_change_of_a_cluster_updates_its_overrides(story: Story) -> None:
    await story.submit(override("o", images("v2", labelSelector={"matchLabels": {"site": "edge"}})))
    await placed(story)
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"site": "edge"}))
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"site": "edge", "more": "yes"}))
    await story.submit(clusters.ClusterLabelled(name="member2", labels={}))
    assert await applied_overrides(story, "member1") == [[]]
    assert await applied_overrides(story, "member2") == [[], ["o[0]"], []]


async def test_region_change_of_a_cluster_updates_its_overrides(story: Story) -> None:
    field = {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}
    await story.submit(override("o", images("v2", fieldSelector=field)))
    await placed(story)
    await story.submit(clusters.ClusterDescribed(name="member1", region="eu"))
    assert await applied_overrides(story, "member1") == [[], ["o[0]"]]


async def test_label_change_of_a_template_updates_its_overrides(story: Story) -> None:
    labelled = [{**selector(), "labelSelector": {"matchLabels": {"tier": "front"}}}]
    await story.submit(override("o", images("v2"), selectors=labelled))
    await placed(story)
    await story.submit(deployment("web", 2, labels={"tier": "front"}))
    assert await applied_overrides(story, "member1") == [[], ["o[0]"]]


async def test_resumed_work_has_the_current_overrides(story: Story) -> None:
    await placed(story)
    await story.submit(policy("p", BOTH, suspension={"dispatching": True}))
    await story.submit(override("o", images("v2")))
    assert await applied_overrides(story, "member1") == [[]]
    await story.submit(policy("p", BOTH))
    assert await applied_overrides(story, "member1") == [[], ["o[0]"]]


async def test_unclaimed_workload_keeps_its_overrides(story: Story) -> None:
    await placed(story)
    await story.submit(policy_deleted("p"))
    await story.submit(override("o", images("v2")))
    assert await applied_overrides(story, "member1") == [[]]


async def test_overrides_apply_to_other_kinds(story: Story) -> None:
    await story.submit(policy("c", BOTH, selector("web", CONFIG_MAP)), template("web", CONFIG_MAP))
    await story.submit(
        override("o", {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}})
    )
    assert await applied_overrides(story, "member1", key("web", CONFIG_MAP)) == [[], ["o[0]"]]
    await story.submit(deleted("web", CONFIG_MAP))
    await story.submit(override_deleted("o"))
    assert len(await applied_overrides(story, "member1", key("web", CONFIG_MAP))) == 2


async def test_restart_keeps_overrides_and_dispatches_nothing(story: Story) -> None:
    await story.submit(override("o", images("v2")))
    await placed(story)
    await story.restart()
    assert len(await applied_overrides(story, "member1")) == 1
    await story.submit(deployment("web", 3, labels={"app": "web"}))
    assert await applied_overrides(story, "member1") == [["o[0]"], ["o[0]"]]


# --- failures in clusters ---


async def test_failed_override_is_shown_in_the_binding_status(story: Story) -> None:
    await story.submit(override("o", images("v2", clusterNames=["member1"])))
    await placed(story)
    await story.report(WEB, "member1", fault="why not")
    await story.report(WEB, "member2")
    *_, last = await story.recorded(decisions.StatusAggregated, WEB)
    shown = {member.cluster: (member.applied, member.health, member.message) for member in last.members}
    assert shown == {"member1": (False, "Unknown", "why not"), "member2": (True, "Healthy", "")}
    assert not last.fully_applied
    await story.report(WEB, "member1")
    *_, last = await story.recorded(decisions.StatusAggregated, WEB)
    assert last.fully_applied


async def test_replacement_with_a_failed_override_does_not_end_the_eviction(story: Story) -> None:
    anywhere = on("member1", "member2", scheduling=DYNAMIC)
    await story.submit(override("o", images("v2")), policy("p", anywhere), deployment("web", 4))
    await story.report(WEB, "member1")
    await story.report(WEB, "member2")
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 4}
    await story.report(WEB, "member2", fault="why not")
    assert await story.recorded(decisions.EvictionFinished) == []
    assert set(await story.running(WEB)) == {"member1", "member2"}
    await story.report(WEB, "member2")
    assert set(await story.running(WEB)) == {"member2"}


# --- malformed policies ---


_MALFORMED: list[Json] = [
    {"overrideRules": [{}]},
    {"overrideRules": [{"overriders": {"imageOverrider": [{"component": "Name", "operator": "add"}]}}]},
    {"overrideRules": [{"targetCluster": {"clusterNames": [1]}, "overriders": {}}]},
    {"resourceSelectors": [{"apiVersion": "apps/v1"}]},
    {"targetCluster": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
    {"overrideRules": None},
]


@pytest.mark.parametrize("spec", _MALFORMED)
async def test_malformed_override_is_refused_and_the_former_one_is_kept(story: Story, spec: Json) -> None:
    await story.submit(override("o", images("v2")))
    story.refused += 1
    await story.submit(override("o", spec=spec))
    await placed(story)
    assert await applied_overrides(story, "member1") == [["o[0]"]]


async def test_null_is_a_value_within_a_patch(story: Story) -> None:
    patch = {"path": "/spec/paused", "operator": "add", "value": None}
    await story.submit(override("o", {"overriders": {"plaintext": [patch]}}))
    await placed(story)
    assert await applied_overrides(story, "member1") == [["o[0]"]]
