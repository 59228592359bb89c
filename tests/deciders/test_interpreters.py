"""Interpreters of custom kinds: health, aggregated status, dependencies, and fields retained by members."""

import pytest

from engine.agent import statuses
from events import decisions, enums, job_statuses, policies, rejections, shapes, works
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.builders.inputs import interpreter, joined, key, policy, template
from tests.builders.manifests import CONFIG_MAP, EVEN, FLINK, on, raw, selector
from tests.deciders.story import Story

JOB = key("job", FLINK)
MEMBERS = ("member1", "member2")
STATE = "{.job.state}"
RESTARTS = ".job.restarts"
CHECK: Json = {"jsonPath": ".a", "operator": "Exists"}
EMPTY: Json = {}
NOTHING: list[Json] = []
SAID: Json = {
    "health": {"jsonPath": STATE, "values": ["RUNNING"]},
    "statusFields": [
        {"jsonPath": RESTARTS, "aggregate": "Sum"},
        {"jsonPath": ".job.lag", "aggregate": "Max"},
        {"jsonPath": STATE},
    ],
    "dependencies": [{"apiVersion": "v1", "kind": "ConfigMap", "namesPath": "{.spec.configs[*].name}"}],
    "retainedFields": ["spec.job.state"],
}


@pytest.fixture(autouse=True)
async def a_job_in_two_members(story: Story) -> None:
    await story.submit(
        *(joined(name) for name in MEMBERS),
        interpreter(**SAID),
        policy("p", on(*MEMBERS), selector("job", FLINK)),
        template("job", FLINK, fields={"spec": {"size": 2}}),
    )


async def test_works_contain_the_status_paths_to_read(story: Story) -> None:
    applied = await story.recorded(works.WorkApplied, JOB)
    assert [work.cluster for work in applied] == list(MEMBERS)
    assert {work.reading for work in applied} == {
        shapes.Reading(
            values=(".job.lag", RESTARTS, STATE),
            health=shapes.HealthRule(path=STATE, values=("RUNNING",)),
            retained=("spec.job.state",),
        )
    }
    await story.submit(interpreter("spec.size"))
    newest = (await story.recorded(works.WorkApplied, JOB))[-1]
    assert (newest.reading, newest.replicas) == (shapes.Reading(replicas="spec.size"), 2)
    await story.submit(interpreter("spec.replicas"))
    newest = (await story.recorded(works.WorkApplied, JOB))[-1]
    assert (newest.reading, newest.replicas) == (None, None)


@pytest.mark.parametrize("is_restored", [False, True])
async def test_earlier_interpreter_of_a_kind_is_in_use_again_when_the_later_one_is_deleted(
    story: Story, *, is_restored: bool
) -> None:
    await story.submit(interpreter("spec.size"))
    other = KubeObject(manifests.interpreter("spec.replicas")).with_metadata({"name": "other"})
    await story.submit(policies.InterpreterApplied(manifest=raw(other.document)))
    assert story.binding(JOB).works["member1"].replicas == -1
    if is_restored:
        story.worker.facts = story.worker.facts.copy()
    await story.submit(policies.InterpreterDeleted(name="other"))
    assert story.binding(JOB).works["member1"].replicas == 2
    await story.submit(policies.InterpreterDeleted(name="flink"))
    assert story.binding(JOB).works["member1"].replicas == -1


async def test_health_condition_is_read_from_the_status_conditions(story: Story) -> None:
    await story.submit(interpreter(health={"condition": {"type": "Ready"}}))
    reading = (await story.recorded(works.WorkApplied, JOB))[-1].reading
    assert reading is not None
    rule = shapes.HealthRule(path='.conditions[?(@.type=="Ready")].status', values=("True",))
    assert reading.health == rule


async def test_works_contain_the_alternatives_of_a_health_rule(story: Story) -> None:
    rollout: Json = {"jsonPath": ".updated", "atLeast": ".spec.size"}
    ready: Json = {"condition": {"type": "Ready", "reasons": ["Succeeded"]}}
    await story.submit(interpreter(health={"anyOf": [{"allOf": [rollout]}, {"allOf": [ready]}]}))
    reading = (await story.recorded(works.WorkApplied, JOB))[-1].reading
    condition = '.conditions[?(@.type=="Ready")]'
    assert reading == shapes.Reading(
        alternatives=(
            (shapes.HealthRule(path=".updated", values=(), at_least=".spec.size"),),
            (
                shapes.HealthRule(path=f"{condition}.status", values=("True",)),
                shapes.HealthRule(path=f"{condition}.reason", values=("Succeeded",)),
            ),
        )
    )
    await story.restart()


async def test_single_check_among_alternatives_is_the_same_as_without_them(story: Story) -> None:
    check: Json = {"jsonPath": ".state", "operator": "NotIn", "values": ["FAILED"]}
    await story.submit(interpreter(health=check))
    count = len(await story.recorded(works.WorkApplied, JOB))
    await story.submit(interpreter(health={"anyOf": [{"allOf": [check]}]}))
    applied = await story.recorded(works.WorkApplied, JOB)
    assert len(applied) == count
    rule = shapes.HealthRule(path=".state", values=("FAILED",), operator=enums.HealthOperator.NOT_IN)
    assert applied[-1].reading == shapes.Reading(health=rule)


async def test_status_fields_are_aggregated_as_declared(story: Story) -> None:
    await story.report(JOB, "member1", values={RESTARTS: "3", ".job.lag": "70", STATE: "RUNNING"})
    await story.report(JOB, "member2", values={RESTARTS: "4", ".job.lag": "much", STATE: "FAILED"})
    status = (await story.recorded(decisions.StatusAggregated, JOB))[-1]
    assert status.fields == {RESTARTS: 7, ".job.lag": 70, STATE: "RUNNING"}
    assert status.members[1].values == {RESTARTS: "4", ".job.lag": "much", STATE: "FAILED"}
    await story.restart()


@pytest.mark.parametrize("size", [-3, 2**31, 2**64, "3"])
async def test_size_that_is_no_count_of_replicas_counts_as_none(story: Story, size: object) -> None:
    await story.submit(interpreter("spec.size"), template("job", FLINK, fields={"spec": {"size": size}}))
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].replicas is None
    assert await story.replicas(JOB) == {"member1": None, "member2": None}


async def test_requests_that_are_no_quantities_are_left_out(story: Story) -> None:
    requests = {"cpu": "500m", "memory": "much", "pods": None, "storage": 1e300}
    fields: Json = {"spec": {"size": 2, "requests": requests}}
    await story.submit(interpreter("spec.size", "spec.requests"), template("job", FLINK, fields=fields))
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].requests == {"cpu": "500m"}


async def test_counts_of_any_size_are_aggregated(story: Story) -> None:
    for name, count in zip(MEMBERS, ("9" * 15, "9" * 200), strict=True):
        await story.report(JOB, name, values={RESTARTS: count})
    status = (await story.recorded(decisions.StatusAggregated, JOB))[-1]
    assert status.fields == {RESTARTS: int("9" * 15)}


async def test_declared_dependencies_are_sent_along(story: Story) -> None:
    await story.submit(template("settings", CONFIG_MAP, fields={"data": {}}))
    names: list[Json] = [{"name": "settings"}, {"name": "No Name"}, {"name": 3}]
    await story.submit(
        policy("p", on(*MEMBERS), selector("job", FLINK), propagateDeps=True),
        template("job", FLINK, fields={"spec": {"configs": names}}),
    )
    assert set(await story.running(key("settings", CONFIG_MAP))) == set(MEMBERS)
    await story.restart()
    await story.submit(interpreter("spec.size"))
    assert await story.running(key("settings", CONFIG_MAP)) == {}


async def test_pod_specs_have_the_requests_of_a_replica_and_dependencies(story: Story) -> None:
    def pod(cpu: str, settings: str) -> Json:
        source: Json = {"configMapRef": {"name": settings}}
        return {"containers": [{"envFrom": [source], "resources": {"requests": {"cpu": cpu}}}]}

    for name in ("a", "b"):
        await story.submit(template(name, CONFIG_MAP, fields={"data": {}}))
    workers: list[Json] = [{"pod": pod("2", "b")}, {"pod": {"containers": "none"}}]
    await story.submit(
        policy("p", on(*MEMBERS), selector("job", FLINK), propagateDeps=True),
        template("job", FLINK, fields={"spec": {"size": 2, "pod": pod("100m", "a"), "workers": workers}}),
        interpreter("spec.size", podSpecPaths=["{.spec.pod}", ".spec.workers[*].pod"]),
    )
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].requests == {"cpu": "100m"}
    for name in ("a", "b"):
        assert set(await story.running(key(name, CONFIG_MAP))) == set(MEMBERS)
    await story.submit(interpreter("spec.size", podSpecPaths=[".spec.workers[1].pod"]))
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].requests is None
    assert await story.running(key("a", CONFIG_MAP)) == {}


async def test_requests_path_is_used_before_the_pod_specs(story: Story) -> None:
    pod: Json = {"containers": [{"resources": {"requests": {"cpu": "100m"}}}]}
    await story.submit(
        interpreter("spec.size", "spec.requests", podSpecPaths=["{.spec.pod}"]),
        template("job", FLINK, fields={"spec": {"size": 2, "pod": pod, "requests": {"cpu": "1"}}}),
    )
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].requests == {"cpu": "1"}


async def test_default_number_of_replicas_is_divided_but_not_written_to_a_work_with_all_of_them(
    story: Story,
) -> None:
    await story.submit(
        policy("p", on(*MEMBERS, scheduling=EVEN), selector("job", FLINK)),
        interpreter("spec.size", defaultReplicas=1),
        template("job", FLINK, fields={"spec": {}}),
    )
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].replicas == 1
    assert list((await story.replicas(JOB)).values()) == [None]
    await story.submit(template("job", FLINK, fields={"spec": {"size": 2}}))
    assert await story.replicas(JOB) == {"member1": 1, "member2": 1}
    await story.submit(interpreter("spec.size", defaultReplicas=2))
    assert await story.replicas(JOB) == {"member1": 1, "member2": 1}
    await story.submit(interpreter("spec.none", defaultReplicas=3))
    await story.submit(policy("p", on(*MEMBERS), selector("job", FLINK)))
    assert await story.replicas(JOB) == {"member1": None, "member2": None}
    await story.submit(template("job", FLINK, fields={"spec": {"none": -1}}))
    assert (await story.recorded(decisions.BindingDeclared, JOB))[-1].replicas is None


async def test_last_cluster_with_a_value_gives_the_aggregated_value(story: Story) -> None:
    await story.submit(interpreter(statusFields=[{"jsonPath": STATE, "aggregate": "Last"}]))
    await story.report(JOB, "member1", values={STATE: "RUNNING"})
    for values in ({}, {STATE: ""}):
        await story.report(JOB, "member2", values=values)
        assert (await story.recorded(decisions.StatusAggregated, JOB))[-1].fields == {STATE: "RUNNING"}
    await story.report(JOB, "member2", values={STATE: "FAILED"})
    assert (await story.recorded(decisions.StatusAggregated, JOB))[-1].fields == {STATE: "FAILED"}


async def test_whole_status_is_reported_beside_the_requested_values(story: Story) -> None:
    await story.submit(interpreter(statusFields=[{"jsonPath": STATE}], wholeStatus=True))
    reading = (await story.recorded(works.WorkApplied, JOB))[-1].reading
    assert reading == shapes.Reading(values=(STATE,), whole=True)
    live = KubeObject({"apiVersion": FLINK[0], "kind": FLINK[1], "status": {"job": {"state": "UP"}, "n": 1}})
    state = statuses.object_state(live, reading)
    assert (state.values, state.status) == ({STATE: "UP"}, '{"job":{"state":"UP"},"n":1}')
    for name in MEMBERS:
        await story.report(JOB, name, values=state.values)
    aggregated = (await story.recorded(decisions.StatusAggregated, JOB))[-1]
    assert (aggregated.whole, aggregated.fields) == (True, {STATE: "UP"})


async def test_job_status_is_summed_over_its_clusters(story: Story) -> None:
    batch, kind = key("sum", manifests.JOB), manifests.JOB
    await story.submit(
        policy("batch", on(*MEMBERS), selector("sum", kind)), template("sum", kind, fields={"spec": {}})
    )
    (reading,) = {work.reading for work in await story.recorded(works.WorkApplied, batch)}
    assert reading is not None
    assert {".succeeded", ".failed", job_statuses.COMPLETE} <= set(reading.values)
    await story.report(batch, "member1", values={".succeeded": "3", ".startTime": "2026-01-01T00:00:00Z"})
    await story.report(batch, "member2", values={".succeeded": "2", ".failed": "1"})
    status = (await story.recorded(decisions.StatusAggregated, batch))[-1]
    assert status.fields == {".succeeded": 5, ".failed": 1, ".startTime": "2026-01-01T00:00:00Z"}
    await story.restart()


async def test_status_is_aggregated_once_although_the_worker_restarts(story: Story) -> None:
    values = {STATE: "RUNNING", RESTARTS: "3", ".job.lag": "70"}
    await story.report(JOB, "member1", values=values)
    before = len(await story.recorded(decisions.StatusAggregated, JOB))
    await story.restart()
    await story.report(JOB, "member1", values=values)
    assert len(await story.recorded(decisions.StatusAggregated, JOB)) == before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"health": {}}, "spec.health"),
        ({"health": {"jsonPath": ".a"}}, "spec.health.values"),
        ({"health": {"values": ["a"]}}, "spec.health.jsonPath"),
        ({"health": {"jsonPath": ".a[", "values": ["a"]}}, "spec.health.jsonPath"),
        ({"health": {"jsonPath": ".a", "values": ["a"], "condition": {"type": "A"}}}, "spec.health"),
        ({"health": {"condition": {"type": 'a"b'}}}, "spec.health.condition.type"),
        ({"health": {"jsonPath": ".a", "operator": "Exists", "values": ["a"]}}, "spec.health.values"),
        ({"health": {"jsonPath": ".a", "operator": "NotIn"}}, "spec.health.values"),
        ({"health": {"jsonPath": ".a", "operator": "Gt", "values": ["1"]}}, "spec.health.operator"),
        ({"health": {"jsonPath": ".a", "atLeast": ".b["}}, "spec.health.atLeast"),
        ({"health": {"jsonPath": ".a", "atLeast": ".b", "values": ["1"]}}, "spec.health.values"),
        ({"health": {"atLeast": ".b"}}, "spec.health.jsonPath"),
        ({"health": {"anyOf": []}}, "spec.health.anyOf"),
        ({"health": {"anyOf": [{"allOf": NOTHING}]}}, "spec.health.anyOf[0].allOf"),
        ({"health": {"anyOf": [{"allOf": [EMPTY]}]}}, "spec.health.anyOf[0].allOf[0]"),
        ({"health": {"anyOf": [{"allOf": [CHECK] * 17}]}}, "spec.health.anyOf"),
        ({"health": {"anyOf": [{"allOf": [CHECK]}] * 17}}, "spec.health.anyOf"),
        ({"health": {"anyOf": [{"allOf": [CHECK]}], **CHECK}}, "spec.health.anyOf"),
        ({"statusFields": [{"jsonPath": ".a..b"}]}, "spec.statusFields[0].jsonPath"),
        ({"statusFields": [{"jsonPath": ".a"}, {"jsonPath": ".a"}]}, "spec.statusFields[1].jsonPath"),
        ({"statusFields": [{"jsonPath": ".a", "aggregate": "Mean"}]}, "spec.statusFields[0].aggregate"),
        ({"statusFields": [{"jsonPath": f".a{index}"} for index in range(17)]}, "spec.statusFields"),
        ({"dependencies": [{"apiVersion": "v1", "kind": "Secret"}]}, "spec.dependencies[0].namesPath"),
        (
            {"dependencies": [{"apiVersion": "v1", "kind": "Namespace", "namesPath": ".a"}]},
            "spec.dependencies[0].kind",
        ),
        ({"defaultReplicas": 2}, "spec.defaultReplicas"),
        ({"defaultReplicas": 0}, "spec.defaultReplicas"),
        ({"podSpecPaths": [".spec.pod["]}, "spec.podSpecPaths[0]"),
        ({"podSpecPaths": [".spec"] * 17}, "spec.podSpecPaths"),
        ({"retainedFields": ["metadata.labels"]}, "spec.retainedFields[0]"),
        ({"retainedFields": ["spec.list[0]"]}, "spec.retainedFields[0]"),
    ],
)
async def test_invalid_interpreter_fields_are_refused(story: Story, fields: Json, field: str) -> None:
    story.refused = 1
    await story.submit(interpreter(**fields))
    (refused,) = await story.recorded(rejections.InputRejected)
    assert refused.field == field
