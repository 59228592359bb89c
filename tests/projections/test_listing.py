"""Every change in a list has its own number, and an event under it, for every kind."""

from collections.abc import Sequence

import pytest

from engine.log.local import MemoryLog
from events import policies, shapes
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deleted,
    interpreter,
    joined,
    key,
    policy,
    quota,
    referring,
    template,
)
from tests.builders.manifests import CONFIG_MAP, DYNAMIC, FLINK, POLICIES, on, selector
from tests.deciders import story as engine_stories
from tests.projections import listing_checker
from tests.projections.stories import Story
from tests.simulation import checks, world
from tests.simulation.moves import playing


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_every_difference_between_lists_has_a_number_and_an_event(seed: int) -> None:
    played = world.World(seed)
    await played.start()
    await playing.play(played, 25)
    assert await listing_checker.check(await checks.all_records(played.log)) == []


@pytest.mark.parametrize("seed", range(3))
async def test_deletion_shows_the_object_as_in_the_list_before(seed: int) -> None:
    story, log = Story(seed), MemoryLog()
    await log.append(story.opening())
    for _ in range(40):
        await log.append(story.more())
    assert await listing_checker.check(await log.read_all(0, 10_000)) == []


async def test_binding_changes_with_the_replicas_of_its_dependents() -> None:
    clusters = on("member1", "member2", scheduling=DYNAMIC)
    needing = [referring("web", "ConfigMap/settings", replicas=count) for count in (2, 6, 1)]
    first = [[policy("web", clusters, selector("web"), propagateDeps=True), template("settings", CONFIG_MAP)]]
    assert await _findings(*first, *([update] for update in needing), [deleted("web")]) == []


async def test_template_changes_when_its_binding_is_withdrawn() -> None:
    needing = policy("web", on("member1"), selector("web"), propagateDeps=True)
    first = [[needing, template("settings", CONFIG_MAP), referring("web", "ConfigMap/settings")]]
    assert await _findings(*first, [referring("web")], reported=(key("settings", CONFIG_MAP),)) == []


async def test_template_changes_with_its_declaration() -> None:
    sized: Json = {"spec": {"r": 4}}
    web = policy("web", on("member1")), policy("job", on("member1"), selector("job", FLINK))
    first = [[*web, interpreter("spec.r"), referring("web"), template("job", FLINK, fields=sized)]]
    # A status of the template that has replicas, until its interpreter reads them from another field.
    again = [deleted("web"), referring("web")]
    assert await _findings(*first, [interpreter("spec.q")], again, reported=(key("job", FLINK),)) == []


async def test_works_change_with_their_federated_quota() -> None:
    ref = shapes.WorkloadRef(
        api_version=POLICIES, kind="FederatedResourceQuota", name="few", namespace="default"
    )
    quotas = [quota("few", member1="1", member2="2"), quota("few", member2="2"), quota("few", member1="3")]
    assert (
        await _findings(*([update] for update in quotas), [policies.ConfigurationDeleted(object=ref)]) == []
    )


async def _findings(*batches: Sequence[shapes.Event], reported: Sequence[str] = ()) -> list[str]:
    """Return the faults of the views of a log in which the engine answers these inputs.

    ``reported`` are the keys of workloads that clusters report after the first inputs.
    """
    story = engine_stories.Story()
    await story.worker.recover()
    for name in ("member1", "member2"):
        await story.submit(joined(name), capacity(name))
    for inputs in batches:
        await story.submit(*inputs)
        for workload in reported if inputs is batches[0] else ():
            await story.report(workload, "member1")
    return await listing_checker.check(await story.log.read_all(0, story.log.last_number()))
