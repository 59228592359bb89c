"""The placements of the propagation guide, each with the result that the guide shows."""

import msgspec
import pytest

from events import decisions
from events.json_values import Json
from tests.builders.inputs import capacity, deployment, joined, key, policy, tainted
from tests.builders.manifests import DUPLICATED, EVEN
from tests.deciders.story import Story

NGINX = key("nginx")
WHERE = {
    "member1": ("huaweicloud", "us-east-1", "us"),
    "member2": ("huaweicloud", "cn-south-1", "us"),
    "member3": ("aws", "eu-west-1", "eu"),
}
LOCATIONS: dict[str, Json] = {
    "matchLabels": {"matchLabels": {"location": "us"}},
    "matchExpressions": {"matchExpressions": [{"key": "location", "operator": "In", "values": ["us"]}]},
}


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    for name, (provider, region, location) in WHERE.items():
        member = joined(name, {"location": location})
        await story.submit(msgspec.structs.replace(member, provider=provider, region=region), capacity(name))


async def placed(story: Story, placement: Json, replicas: int = 2) -> dict[str, int]:
    await story.submit(policy("nginx-propagation", placement), deployment("nginx", replicas))
    return story.placed(NGINX)


@pytest.mark.parametrize("form", list(LOCATIONS))
async def test_clusters_are_selected_by_label(story: Story, form: str) -> None:
    placement: Json = {"clusterAffinity": {"labelSelector": LOCATIONS[form]}}
    assert await placed(story, placement) == {"member1": 2, "member2": 2}


async def test_clusters_are_selected_by_all_field_expressions(story: Story) -> None:
    expressions = [
        {"key": "provider", "operator": "In", "values": ["huaweicloud"]},
        {"key": "region", "operator": "NotIn", "values": ["cn-south-1"]},
    ]
    placement: Json = {"clusterAffinity": {"fieldSelector": {"matchExpressions": expressions}}}
    assert await placed(story, placement) == {"member1": 2}


async def test_clusters_are_selected_by_name(story: Story) -> None:
    placement: Json = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
    assert await placed(story, placement) == {"member1": 2, "member2": 2}


async def test_excluded_clusters_are_not_selected(story: Story) -> None:
    placement: Json = {"clusterAffinity": {"exclude": ["member1", "member3"]}}
    assert await placed(story, placement) == {"member2": 2}


async def test_no_affinity_selects_every_cluster(story: Story) -> None:
    assert set(await placed(story, {})) == set(WHERE)


async def test_backup_group_is_used_when_the_primary_group_fails(story: Story) -> None:
    groups = [
        {"affinityName": "primary-clusters", "clusterNames": ["member1"]},
        {"affinityName": "backup-clusters", "clusterNames": ["member1", "member2"]},
    ]
    assert await placed(story, {"clusterAffinities": groups}) == {"member1": 2}
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(NGINX) == {"member2": 2}


async def test_nothing_is_placed_if_no_group_fits(story: Story) -> None:
    groups = [
        {"affinityName": "local-clusters", "clusterNames": ["local-member1"]},
        {"affinityName": "cloud-clusters", "clusterNames": ["public-cloud-member1"]},
    ]
    assert await placed(story, {"clusterAffinities": groups}) == {}
    (failed,) = await story.recorded(decisions.ScheduleFailed)
    assert failed.reason == "NoClusterFit"


async def test_one_cluster_is_chosen_in_each_of_two_regions(story: Story) -> None:
    spread = [
        {"spreadByField": "region", "maxGroups": 2, "minGroups": 2},
        {"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1},
    ]
    chosen = await placed(story, {"replicaScheduling": DUPLICATED, "spreadConstraints": spread})
    assert len({WHERE[name][1] for name in chosen}) == len(chosen) == 2


def weighted(*weights: tuple[str, int]) -> Json:
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights]
    return {**EVEN, "weightPreference": {"staticWeightList": listed}}


async def test_equal_weights_halve_the_replicas(story: Story) -> None:
    placement: Json = {"replicaScheduling": weighted(("member1", 1), ("member2", 1))}
    assert await placed(story, placement, 10) == {"member1": 5, "member2": 5}


async def test_static_weights_ignore_capacity_and_spread(story: Story) -> None:
    await story.submit(capacity("member1", 0))
    spread = [{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1}]
    placement: Json = {
        "replicaScheduling": weighted(("member1", 2), ("member2", 1)),
        "spreadConstraints": spread,
    }
    assert await placed(story, placement, 9) == {"member1": 6, "member2": 3}


async def test_weighted_without_weights_is_even(story: Story) -> None:
    assert await placed(story, {"replicaScheduling": EVEN}, 9) == {"member1": 3, "member2": 3, "member3": 3}


async def test_duplicated_gives_each_cluster_all_replicas(story: Story) -> None:
    assert await placed(story, {"replicaScheduling": DUPLICATED}) == {
        "member1": 2,
        "member2": 2,
        "member3": 2,
    }
