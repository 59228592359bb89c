"""The records of stories, to be served."""

from events import records
from tests.builders.inputs import (
    capacity,
    deployment,
    joined,
    key,
    policy,
    rebalancer,
    ref,
    tainted,
)
from tests.builders.manifests import DYNAMIC, on, selector
from tests.deciders.story import Story

WEB = key("web")


async def written(story: Story) -> list[records.Record]:
    """Return the records of a story, to be served."""
    return [
        records.record(record.topic, record.partition, record.key, record.headers, record.value)
        for record in await story.log.read_all(0, 10_000)
    ]


async def moved() -> list[records.Record]:
    """Records of an engine: web runs on two members, leaves one for a taint, is rebalanced; lost fits nowhere."""
    story = Story()
    await story.submit(
        joined("member1", {"tier": "gold"}), joined("member2"), capacity("member1", 6), capacity("member2", 3)
    )
    await story.submit(deployment("web", 3), policy("p", on("member1", "member2", scheduling=DYNAMIC)))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(rebalancer("demo", ref("web")), tainted("member2", "NoSchedule", "soon"))
    await story.submit(
        deployment("lost", 2), policy("elsewhere", on("member9"), selector("lost"), priority=9)
    )
    return await written(story)
