"""FederatedResourceQuotas assign ResourceQuotas to clusters, and show what is used of them."""

import pytest
from msgspec import structs

from engine.deciders import quota_amounts, quota_assignments
from events import clusters, decisions, health, policies, release, shapes, works
from tests.builders import inputs
from tests.builders.inputs import joined, key, quota
from tests.builders.manifests import POLICIES, manifest, on, selector
from tests.deciders.story import Story

QUOTA = ("v1", "ResourceQuota")
FEW = key("few", QUOTA)


async def _assigned(story: Story, cluster: str) -> list[int]:
    """The indexes of the assignments that works of a cluster name, in order."""
    applied = await story.recorded(works.WorkApplied, cluster)
    return [ref.rules[0] for work in applied for ref in work.overrides]


async def test_quota_is_sent_to_each_named_cluster_even_if_it_joins_later(story: Story) -> None:
    await story.submit(joined("member1"), joined("member3"), quota("few", member1="1", member2="2"))
    assert [await _assigned(story, f"member{number}") for number in (1, 2, 3)] == [[0], [], []]
    await story.submit(joined("member2"))
    assert await _assigned(story, "member2") == [1]
    await story.restart()
    await story.submit(quota("few", member2="2", member1="1"))
    assert [await _assigned(story, f"member{number}") for number in (1, 2)] == [[0, 1], [1, 0]]
    await story.submit(quota("few", cpu="9", member2="2", member1="1"))
    assert [await _assigned(story, f"member{number}") for number in (1, 2)] == [[0, 1], [1, 0]]


async def test_quota_is_removed_with_its_assignment_and_with_the_whole(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), quota("few", member1="1", member2="2"))
    await story.submit(quota("few", member2="2"))
    assert [removed.cluster for removed in await story.recorded(works.WorkRemoved)] == ["member1"]
    ref = shapes.WorkloadRef(
        api_version=POLICIES, kind="FederatedResourceQuota", name="few", namespace="default"
    )
    await story.submit(policies.ConfigurationDeleted(object=ref))
    assert [removed.cluster for removed in await story.recorded(works.WorkRemoved)] == ["member1", "member2"]
    assert not story.is_known(FEW)


async def test_quota_is_not_sent_to_a_leaving_cluster_again(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), quota("few", member1="1", member2="2"))
    await story.submit(inputs.health_reported("member1"), clusters.ClusterLeaving(name="member1"))
    await story.submit(quota("few", member1="3", member2="4"))
    assert (await story.running(FEW)).keys() == {"member2"}
    assert [await _assigned(story, f"member{number}") for number in (1, 2)] == [[0], [1, 1]]


async def test_use_of_all_clusters_is_summed(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), quota("few", member1="1", member2="2"))
    for cluster, used in (("member1", "300m"), ("member2", "1500m")):
        status = f'{{"hard":{{"cpu":"2"}},"used":{{"cpu":"{used}","pods":"1"}}}}'
        work = (await story.running(FEW))[cluster]
        await story.submit(
            health.WorkloadReported(cluster=cluster, key=FEW, term=work.term, step=work.step, status=status)
        )
    last = (await story.recorded(decisions.StatusAggregated, FEW))[-1]
    assert last.fields == {"cpu": "1800m", "pods": "2"}
    assert [member.applied for member in last.members] == [True, True]


async def test_quota_that_is_created_again_at_once_shows_its_use(story: Story) -> None:
    await story.submit(joined("member1"), quota("few", member1="1"))
    work = (await story.running(FEW))["member1"]
    status = '{"hard":{"pods":"1"},"used":{"pods":"1"}}'
    await story.submit(
        health.WorkloadReported(cluster="member1", key=FEW, term=work.term, step=work.step, status=status)
    )
    shown = (await story.recorded(decisions.StatusAggregated, FEW))[-1]
    ref = shapes.WorkloadRef(
        api_version=POLICIES, kind="FederatedResourceQuota", name="few", namespace="default"
    )
    await story.submit(policies.ConfigurationDeleted(object=ref), quota("few", member1="1"))
    assert (await story.recorded(decisions.StatusAggregated, FEW))[-2:] == [shown, shown]


async def test_use_of_any_size_is_summed(story: Story) -> None:
    await story.submit(joined("member1"), quota("few", member1="1"))
    work = (await story.running(FEW))["member1"]
    status = f'{{"used":{{"cpu":"{"9" * 50}e40"}}}}'
    await story.submit(
        health.WorkloadReported(cluster="member1", key=FEW, term=work.term, step=work.step, status=status)
    )
    assert (await story.recorded(decisions.StatusAggregated, FEW))[-1].fields == {
        "cpu": f"{'9' * 50}{'0' * 22}E"
    }


async def test_quota_that_a_policy_propagates_under_the_same_name_has_precedence(story: Story) -> None:
    own = manifest(*QUOTA, "few", "default", spec={"hard": {"pods": "5"}})
    served = clusters.ApiKind(group_version=QUOTA[0], kinds=(QUOTA[1],))
    for name in ("member1", "member2"):
        await story.submit(structs.replace(joined(name), apis=(served,)))
    await story.submit(quota("few", member1="1", member2="2"))
    await story.submit(inputs.applied(own), inputs.policy("p", on("member1"), selector(kind=QUOTA)))
    assert list(await story.running(FEW)) == ["member1"]
    await story.submit(inputs.deleted("few", QUOTA))
    assert list(await story.running(FEW)) == ["member1", "member2"]


async def test_status_that_is_no_json_object_counts_as_none(story: Story) -> None:
    await story.submit(joined("member1"), quota("few", member1="1"))
    work = (await story.running(FEW))["member1"]
    for status in ("not json", "[]", '{"used":1e999}', '{"hard":' + "[" * 3_000 + "]" * 3_000 + "}"):
        await story.submit(
            health.WorkloadReported(cluster="member1", key=FEW, term=work.term, step=work.step, status=status)
        )
    last = (await story.recorded(decisions.StatusAggregated, FEW))[-1]
    assert (last.members[0].applied, last.fields) == (True, {})


async def test_quota_that_changed_under_a_release_without_quotas_is_sent(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_changes(*_: object) -> list[str]:
        return []

    def propagated(pods: str) -> shapes.Event:
        """A template in the shard of the assignments, so that this shard takes a step."""
        return inputs.applied(manifest(*QUOTA, "few", "default", spec={"hard": {"pods": pods}}))

    await story.submit(joined("member1"), quota("few", member1="1"), propagated("1"))
    # As when the workers of two releases share the shards: the former release begins a term here.
    with monkeypatch.context() as former:
        former.setattr(release, "RELEASE", "0.5.0")
        former.setattr(quota_assignments, "put", no_changes)
        former.setattr(quota_amounts, "put", no_changes)
        await story.restart()
        await story.submit(propagated("2"))
        await story.submit(quota("few", cpu="9", member2="2", member1="1"))
        await story.submit(propagated("3"))
    await story.restart()
    assert await _assigned(story, "member1") == [0, 1]
