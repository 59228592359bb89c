"""Clients suspend the scheduling of a binding, or the dispatching of its works, beside its policy."""

import pytest

from events import decisions, specs, works
from tests.builders.inputs import deleted, deployment, key, policy, ref, tainted
from tests.builders.manifests import EVEN, on
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=EVEN)


pytestmark = pytest.mark.usefixtures("two_members")


def _suspended(*, scheduling: bool | None = None, dispatching: bool | None = None) -> specs.SuspensionWritten:
    return specs.SuspensionWritten(template=ref("web"), scheduling=scheduling, dispatching=dispatching)


async def test_binding_is_not_scheduled_until_a_client_ends_that(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(_suspended(scheduling=True))
    await story.submit(deployment("web", 6))
    assert story.placed(WEB) == {"member1": 1, "member2": 1}
    await story.restart()
    await story.submit(policy("p", on("member1", scheduling=EVEN)))
    assert story.placed(WEB) == {"member1": 1, "member2": 1}
    await story.submit(_suspended(scheduling=False))
    assert story.placed(WEB) == {"member1": 6}


async def test_suspension_written_with_the_template_delays_its_first_placement(story: Story) -> None:
    await story.submit(policy("p", BOTH))
    await story.write(deployment("web", 2), _suspended(scheduling=True))
    await story.settle()
    assert story.placed(WEB) == {}
    await story.submit(_suspended(scheduling=False))
    assert story.placed(WEB) == {"member1": 1, "member2": 1}


async def test_works_are_not_dispatched_until_a_client_ends_that(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(_suspended(dispatching=True))
    await story.submit(deployment("web", 4))
    assert [work.replicas for work in await story.recorded(works.WorkApplied, "member1")] == [1]
    await story.submit(policy("p", BOTH, conflictResolution="Overwrite"))
    assert len(await story.recorded(works.WorkApplied, "member1")) == 1
    await story.submit(_suspended(dispatching=False))
    assert (await story.replicas(WEB))["member1"] == 2


async def test_suspension_ends_with_its_template(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2), _suspended(scheduling=True))
    await story.submit(deleted("web"))
    await story.submit(deployment("web", 4))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_eviction_does_not_count_as_replaced_while_scheduling_is_suspended(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    for name in ("member1", "member2"):
        await story.report(WEB, name)
    await story.submit(_suspended(scheduling=True))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(600)
    assert await story.replicas(WEB) == {"member1": 1, "member2": 1}
    await story.submit(_suspended(scheduling=False))
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 2}


async def test_last_copy_survives_a_taint_while_scheduling_is_suspended(story: Story) -> None:
    await story.submit(policy("p", on("member1", scheduling=EVEN)), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.submit(_suspended(scheduling=True))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(1_200)
    assert await story.replicas(WEB) == {"member1": 2}
    assert await story.recorded(decisions.ScheduleFailed) == []
