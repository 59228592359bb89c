"""Pod priority in a member with too little capacity."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.simulation import cluster, member_history, recovery, reports, state
from engine.works import templates
from engine.works.templates import Template
from events import clusters, shapes
from events.json_values import Json
from tests.builders import manifests
from tests.members import examples

CLASSES: Final = {"high": 1_000, "low": -5, "": 0}


def of_class(name: str, cpu: str = "1") -> Template:
    """Return a template of pods with a priority class and a cpu request."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    pod = {"spec": {"priorityClassName": name, "containers": [container]}}
    return templates.read(msgspec.json.encode({"kind": "Deployment", "spec": {"template": pod}}))


def priority_class(member: state.MemberState, name: str, value: int, step: int = 1, **fields: object) -> None:
    """Apply a PriorityClass to a member."""
    manifest = {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}
    work = examples.applied(name, None, step=step, kind="PriorityClass")
    cluster.apply_work(member, work, 0, template=templates.read(msgspec.json.encode(manifest)))


def apply_work(
    member: state.MemberState, name: str, replicas: int, template: Template, at_ms: int = 0
) -> None:
    """Apply a work with this many replicas, and its immediate consequences."""
    step = 1 + max((workload.known[1] for workload in member.workloads.values()), default=0)
    cluster.apply_work(member, examples.applied(name, replicas, step=step), at_ms, template=template)
    cluster.advance(member, at_ms)


def running(member: state.MemberState) -> dict[str, int]:
    """Return the admitted replicas of each workload."""
    return {
        workload.ref.name: workload.admitted
        for workload in member.workloads.values()
        if workload.replicas is not None
    }


@pytest.fixture
def member() -> state.MemberState:
    """A member with capacity for four replicas, and two classes."""
    new_member = examples.new_state(startup_ms=0, cpu="4")
    for name, value in CLASSES.items():
        if name:
            priority_class(new_member, name, value)
    return new_member


def test_lowest_and_youngest_pods_are_preempted_and_wait(member: state.MemberState) -> None:
    apply_work(member, "plain", 2, of_class(""))
    apply_work(member, "lowly", 2, of_class("low"), at_ms=1)
    apply_work(member, "vital", 3, of_class("high"), at_ms=2)
    assert running(member) == {"plain": 1, "lowly": 0, "vital": 3}

    apply_work(member, "vital", 1, of_class("high"), at_ms=3)
    assert running(member) == {"plain": 2, "lowly": 1, "vital": 1}, "the more important ones come back first"


def test_equal_priority_is_not_preempted_and_no_pod_in_vain(member: state.MemberState) -> None:
    apply_work(member, "vital", 3, of_class("high"))
    apply_work(member, "plain", 1, of_class(""))
    apply_work(member, "other", 1, of_class("high"))
    assert running(member) == {"vital": 3, "plain": 0, "other": 1}

    apply_work(member, "large", 1, of_class("high", cpu="5"))
    assert running(member) == {"vital": 3, "plain": 0, "other": 1, "large": 0}


def test_pod_without_the_scarce_resource_is_not_preempted(member: state.MemberState) -> None:
    apply_work(member, "small", 3, of_class("low", cpu="0"))
    apply_work(member, "plain", 4, of_class(""))
    apply_work(member, "vital", 2, of_class("high"))
    assert running(member) == {"small": 3, "plain": 2, "vital": 2}


def test_class_that_never_preempts_is_only_first_in_the_queue(member: state.MemberState) -> None:
    priority_class(member, "patient", 2_000, preemptionPolicy="Never")
    apply_work(member, "plain", 4, of_class(""))
    apply_work(member, "calm", 2, of_class("patient"))
    assert running(member) == {"plain": 4, "calm": 0}
    apply_work(member, "lowly", 1, of_class("low"))
    apply_work(member, "plain", 1, of_class(""))
    cluster.advance(member, 1)
    assert running(member) == {"plain": 1, "calm": 2, "lowly": 1}


def test_pods_of_an_unknown_class_wait_for_it(member: state.MemberState) -> None:
    apply_work(member, "early", 2, of_class("later"))
    assert running(member) == {"early": 0}
    priority_class(member, "later", 7)
    cluster.advance(member, 1)
    assert running(member) == {"early": 2}


async def test_class_that_a_client_of_the_member_wrote_ranks_pods_until_it_is_deleted() -> None:
    stage = examples.Stage()
    await stage.turn()
    ref = shapes.WorkloadRef(api_version="scheduling.k8s.io/v1", kind="PriorityClass", name="own")
    await write(stage, manifests.deployment("web", 1, "default", priorityClassName="own"))
    await write(stage, manifests.manifest(ref.api_version, ref.kind, "own", value=10))
    for checked in (stage, stage.restarted()):
        await checked.settle()
        assert running(checked.members.state_of("member1")) == {"web": 1}
    await checked.members.write("member1", clusters.MemberObjectDeleted(name="member1", object=ref))
    await write(checked, manifests.deployment("web", 2, "default", priorityClassName="own"))
    assert running(checked.members.state_of("member1")) == {"web": 1}


async def write(stage: examples.Stage, value: Json) -> None:
    """Write an object as a client of the member."""
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))


def test_default_class_applies_to_pods_without_a_class(member: state.MemberState) -> None:
    priority_class(member, "usual", 5_000, globalDefault=True)
    apply_work(member, "vital", 4, of_class("high"))
    apply_work(member, "plain", 1, of_class(""))
    assert running(member) == {"vital": 3, "plain": 1}


def test_system_classes_exist_from_the_start() -> None:
    member = examples.new_state(startup_ms=0, cpu="4")
    apply_work(member, "plain", 4, of_class(""))
    apply_work(member, "system", 2, of_class("system-node-critical"))
    assert running(member) == {"plain": 2, "system": 2}


@given(
    moves=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(CLASSES)), st.integers(0, 6)), max_size=12
    )
)
def test_no_lower_priority_replica_runs_while_a_higher_one_waits(
    moves: list[tuple[str, str, int]],
) -> None:
    member = examples.new_state(startup_ms=0, cpu="4")
    for name, value in CLASSES.items():
        if name:
            priority_class(member, name, value)
    named: dict[str, int] = {}
    for at_ms, (name, kind, replicas) in enumerate(moves):
        named[name] = CLASSES[kind]
        apply_work(member, name, replicas, of_class(kind), at_ms)
        cluster.advance(member, at_ms)
        workloads = {
            workload.ref.name: workload
            for workload in member.workloads.values()
            if workload.replicas is not None
        }
        assert sum(workload.admitted for workload in workloads.values()) <= 4
        for workload_name, waiting in workloads.items():
            others = [named[other] for other, workload in workloads.items() if workload.admitted]
            assert not waiting.pending or all(value >= named[workload_name] for value in others)


def test_preemptions_survive_a_restart(member: state.MemberState) -> None:
    history = member_history.History(joined=True)
    templates_by_key: dict[str, Template] = {}
    for step, (name, replicas, kind) in enumerate((("plain", 4, ""), ("vital", 3, "high")), 1):
        work = examples.applied(name, replicas, step=step)
        member_history.take_work(history, work, step, state.ReportCause())
        templates_by_key[work.key] = of_class(kind)
        apply_work(member, name, replicas, templates_by_key[work.key], step)
    for key, workload in member.workloads.items():
        assert reports.is_current(member, key)
        member_history.take_report(history, reports.workload_report(member, workload), 1)
    for name, value in CLASSES.items():
        if name:
            work = examples.applied(name, None, kind="PriorityClass")
            member_history.take_work(history, work, 0, state.ReportCause())
            templates_by_key[work.key] = Template((), {}, "", rank=templates.Rank(value))

    again = examples.new_state(startup_ms=0, cpu="4")
    recovery.restore(again, history, templates_by_key, 9)
    cluster.advance(again, 9)
    assert running(again) == running(member) == {"plain": 1, "vital": 3}
