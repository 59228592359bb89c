"""ResourceQuotas that clusters report limit the replicas that are placed there."""

import msgspec
import pytest

from events import clusters, decisions
from tests.builders.inputs import capacity, deployment, joined, key, policy
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.join("member1", "member2")
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)))


def _limited(name: str, namespace: str = "default", **free: str) -> clusters.CapacityReported:
    quota = clusters.NamespaceQuota(namespace=namespace, free=free)
    return msgspec.structs.replace(capacity(name), quotas=(quota,))


async def test_replicas_are_divided_by_the_free_amounts_of_quotas(story: Story) -> None:
    await story.submit(_limited("member1", pods="2"))
    await story.submit(deployment("web", 8))
    assert story.placed(WEB)["member1"] <= 2
    assert sum(story.placed(WEB).values()) == 8


async def test_quota_limits_its_own_cluster_of_those_that_the_policy_selects(story: Story) -> None:
    both = on("member2", "member3", scheduling=DYNAMIC)
    await story.submit(joined("member3"), capacity("member3"), policy("p", both))
    await story.submit(_limited("member1", pods="0"), _limited("member3", pods="1"))
    await story.submit(deployment("web", 8))
    assert story.placed(WEB) == {"member2": 7, "member3": 1}


async def test_quota_above_the_free_capacity_adds_none(story: Story) -> None:
    await story.submit(_limited("member1", pods="90"), _limited("member2", pods="90"))
    await story.submit(deployment("web", 21))
    assert story.placed(WEB) == {}


async def test_quota_of_another_namespace_limits_nothing(story: Story) -> None:
    await story.submit(_limited("member1", "other", pods="0"), _limited("member2", "other", pods="0"))
    await story.submit(deployment("web", 8))
    assert sum(story.placed(WEB).values()) == 8


async def test_workload_over_all_quotas_waits_until_one_is_raised(story: Story) -> None:
    await story.submit(_limited("member1", pods="1"), _limited("member2", pods="1"))
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {}
    (failed, *_) = await story.recorded(decisions.ScheduleFailed)
    assert failed.reason == "Unschedulable"
    await story.restart()
    await story.submit(_limited("member2", pods="9"))
    await story.pass_s(60)
    assert sum(story.placed(WEB).values()) == 3


async def test_quota_ends_with_its_cluster_and_with_a_report_without_it(story: Story) -> None:
    await story.submit(_limited("member1", pods="0"), _limited("member2", pods="0"))
    await story.submit(capacity("member1"))
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member1": 3}


@pytest.mark.parametrize("pods", ["-20", "-1e40"])
async def test_quota_below_its_use_allows_no_replica(story: Story, pods: str) -> None:
    await story.submit(_limited("member1", pods=pods), capacity("member2", cpu=1_000, pods=1_000))
    await story.submit(deployment("web", 900))
    assert story.placed(WEB) == {"member2": 900}
