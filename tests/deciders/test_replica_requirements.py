"""Requirements of a replica: how those of its containers, limits, overhead and nodes add up."""

import pytest

from events import decisions
from events.json_values import Json
from tests.builders import inputs
from tests.builders.inputs import key, policy
from tests.builders.manifests import DUPLICATED, EVEN, on
from tests.deciders.story import Story

BOTH = on("member1", "member2", scheduling=DUPLICATED)


pytestmark = pytest.mark.usefixtures("two_members")


async def needs(story: Story, containers: list[Json], **fields: object) -> dict[str, str] | None:
    spec = {"replicas": 1, "template": {"spec": {"containers": containers, **fields}}}
    await story.submit(policy("p", BOTH), inputs.template("web", fields={"spec": spec}))
    return (await story.recorded(decisions.BindingDeclared))[-1].requests


def container(**resources: dict[str, str]) -> Json:
    return {"name": "main", "resources": resources}


async def test_requests_of_containers_are_summed(story: Story) -> None:
    first, second = container(requests={"cpu": "1500m"}), container(requests={"cpu": "1", "memory": "1Gi"})
    assert await needs(story, [first, second]) == {"cpu": "2500m", "memory": str(2**30)}


async def test_missing_request_defaults_to_the_limit(story: Story) -> None:
    limited = container(requests={"cpu": "100m"}, limits={"cpu": "2", "memory": "64Mi"})
    assert await needs(story, [limited]) == {"cpu": "100m", "memory": "64Mi"}


async def test_largest_init_container_counts_if_it_requests_more(story: Story) -> None:
    initial = [container(requests={"cpu": "3"}), container(requests={"cpu": "2"})]
    main = container(requests={"cpu": "1", "memory": "10"})
    assert await needs(story, [main], initContainers=initial) == {"cpu": "3", "memory": "10"}


async def test_pod_overhead_is_added_to_the_requests(story: Story) -> None:
    main = container(requests={"cpu": "1"})
    assert await needs(story, [main], overhead={"cpu": "250m"}) == {"cpu": "1250m"}


async def test_replica_without_requests_has_none(story: Story) -> None:
    assert await needs(story, [container()]) is None


async def test_requirements_of_nodes_are_requirements_without_requests(story: Story) -> None:
    """So a workload that is scaled to 0 leaves its clusters, as in Karmada; one without requirements stays."""
    spec: Json = {"template": {"spec": {"containers": [container()], "nodeSelector": {"disk": "ssd"}}}}
    await story.submit(policy("p", on("member1", "member2", scheduling=EVEN)))
    for replicas in (4, 0):
        await story.submit(inputs.template("web", fields={"spec": {"replicas": replicas, **spec}}))
    declared = (await story.recorded(decisions.BindingDeclared))[-1]
    assert (declared.requests, list(declared.node_claim)) == ({}, ["nodeSelector"])
    assert story.placed(key("web")) == {}
