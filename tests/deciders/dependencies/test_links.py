"""Links between the shards of workloads and of dependencies: order, repetition, refusals, sizes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import decisions, limits, links, rejections, shapes
from events.json_values import Json
from tests.builders.inputs import joined, ref, template
from tests.builders.manifests import CONFIG_MAP
from tests.deciders.dependencies.objects import (
    MEMBERS,
    SETTINGS,
    WEB,
    clusters_running,
    required_by,
    settings_map,
    with_deps,
)
from tests.deciders.story import Story


async def test_dependency_of_many_workloads_is_decided_in_records_of_bounded_size(story: Story) -> None:
    """Otherwise a Secret needed by a whole namespace would exceed the record limit and stop its shard."""
    count, clusters = 90, tuple(f"member{number}" for number in range(100))
    await story.submit(settings_map(), *(needed(f"default/w{index}", 1, *clusters) for index in range(count)))
    requirements = await story.recorded(decisions.BindingRequired, SETTINGS)
    assert len(requirements) > 1
    assert all(
        sum(len(dependent.clusters) for dependent in requirement.required_by) <= 4096
        for requirement in requirements
    )
    assert len(await required_by(story, SETTINGS)) == count
    await story.submit(needed("default/w0", 2, "member1"))
    last = (await story.recorded(decisions.BindingRequired, SETTINGS))[-1]
    assert [dependent.name for dependent in last.required_by] == ["w0"], (
        "who needs it as before is not named again"
    )


def needed(by: str, number: int, *clusters: str) -> shapes.Event:
    """A link from another shard; without clusters, the need ends."""
    dependency = ref("settings", CONFIG_MAP)
    if not clusters:
        return links.DependencyDropped(dependency=dependency, by=by, number=number)
    return links.DependencyNeeded(dependency=dependency, by=by, number=number, clusters=clusters)


async def test_newest_need_wins_and_repeated_links_are_ignored(story: Story) -> None:
    await story.submit(settings_map(), needed("default/a", 5, "member1"))
    await story.submit(needed("default/a", 4, "member2"), needed("default/a", 5, "member3"))
    assert await clusters_running(story, SETTINGS) == ["member1"]
    await story.submit(needed("default/b", 1), needed("default/a", 3))
    assert await clusters_running(story, SETTINGS) == ["member1"]


@pytest.mark.parametrize(
    ("link", "field"),
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
async def test_invalid_links_are_refused(story: Story, link: shapes.Event, field: str) -> None:
    story.refused = 1
    await story.submit(link)
    (refused,) = await story.recorded(rejections.InputRejected)
    assert refused.field == field


@settings(max_examples=10, deadline=None)
@given(
    needs=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.sets(st.sampled_from(MEMBERS))), max_size=8
    ),
    data=st.data(),
)
async def test_order_of_links_does_not_matter(
    needs: list[tuple[str, int, set[str]]], data: st.DataObject
) -> None:
    """Links of one binding arrive in order; links of several bindings arrive in any order."""
    distinct = {(by, number): clusters for by, number, clusters in needs}
    newest = {by: clusters for (by, _), clusters in sorted(distinct.items())}
    waiting = {by: sorted(number for dependent, number in distinct if dependent == by) for by in newest}
    story = Story()
    await story.worker.recover()
    await story.submit(*(joined(name) for name in MEMBERS), settings_map())
    while left := sorted(by for by, numbers in waiting.items() if numbers):
        by = data.draw(st.sampled_from(left))
        number = waiting[by].pop(0)
        await story.submit(needed(f"default/{by}", number, *sorted(distinct[by, number])))
    expected = {name for clusters in newest.values() for name in clusters}
    assert await clusters_running(story, SETTINGS) == sorted(expected)


async def test_dependency_records_respect_the_record_limit(story: Story) -> None:
    await story.submit(with_deps("member1"))
    secrets = [{"secretRef": {"name": f"s{index}"}} for index in range(30_000)]
    containers: list[Json] = [{"name": "main", "image": "nginx", "envFrom": secrets}]
    spec: Json = {"replicas": 1, "template": {"spec": {"containers": containers}}}

    await story.submit(template("web", fields={"spec": spec}))

    (distributed,) = await story.recorded(decisions.DependenciesDistributed, WEB)
    assert len(distributed.dependencies) == limits.DEPENDENCIES_MAX
    written = await story.log.read_all(0, story.log.last_number())
    assert max(len(record.value) for record in written) < limits.RECORD_BYTES_MAX
    assert await clusters_running(story, WEB) == ["member1"]
