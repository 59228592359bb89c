"""Steps yield often enough: the event loop runs other tasks between the portions of a step."""

import time
from collections.abc import Callable, Generator
from typing import Final

import pytest

from engine.deciders import affected_keys, fact_changes, step_outputs, waiting_keys
from engine.deciders.fact_changes import CapacityGrew
from engine.deciders.facts import Facts
from engine.deciders.ledgers import GroupMember, WorkloadGroup
from engine.deciders.shard_fold import ShardFold, Step
from engine.deciders.state import GROUP, REQUESTED, Binding, Cause, Declared, ShardState, Waiting
from engine.domain.bindings import Claim
from events import clusters, keys, limits, links, preemption_decisions, shapes, topics
from events.records import Record
from tests import lines_run
from tests.builders.inputs import deployment, joined, key, policy, priority_class, ref
from tests.builders.manifests import AGGREGATED, selector
from tests.deciders.story import Story

LINES_MAX: Final = 100_000
"""Lines of Python in one portion: some 20 ms."""

BYTES_MAX: Final = limits.RECORD_BYTES_MAX + 256 * 1024
"""Bytes of records encoded in one portion: some 5 ms."""

VITAL: Final = key("vital")
RANKED: Final = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}
POLICY: Final = shapes.PolicyRef(kind="PropagationPolicy", name="p", namespace="default")
CLAIM: Final = Claim(POLICY, "", 1, "", False, (), "", "Abort", None, False)  # noqa: FBT003


class Portions:
    """Counts for each portion of the steps: executed lines of Python, and bytes of encoded records."""

    def __init__(self) -> None:
        """Start without portions."""
        self.lines: list[int] = []
        self.encoded_bytes: list[int] = []

    def are_small(self) -> bool:
        """Return whether no portion holds the event loop for long."""
        return max(self.lines) <= LINES_MAX and max(self.encoded_bytes) <= BYTES_MAX


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> Portions:
    """The portions of the steps that are taken from now on."""
    measured = Portions()
    decide: Callable[..., Generator[None, None, Step]] = ShardFold.decide_in_portions
    encode = step_outputs.Collector.record

    def decide_and_measure(*args: object, **named: object) -> Generator[None, None, Step]:
        step = decide(*args, **named)
        while True:
            measured.encoded_bytes.append(0)
            taken: Step | None = None
            with lines_run.counted() as lines:
                try:
                    next(step)
                except StopIteration as end:
                    taken = end.value
            measured.lines.append(lines.count)
            if taken is not None:
                return taken
            yield

    def encode_and_measure(
        collector: step_outputs.Collector, output: step_outputs.Output, index: int
    ) -> Record:
        record = encode(collector, output, index)
        measured.encoded_bytes[-1] += len(record.value)
        return record

    monkeypatch.setattr(ShardFold, "decide_in_portions", decide_and_measure)
    monkeypatch.setattr(step_outputs.Collector, "record", encode_and_measure)
    return measured


async def _shortage(story: Story, names: list[str], *vital: str) -> None:
    """Clusters without free capacity, and workloads of high priority for them."""
    await story.submit(*map(joined, names), priority_class("high", 1_000))
    full = {"cpu": "10", "memory": "64Gi", "pods": "100"}
    await story.submit(
        *(clusters.CapacityReported(name=name, allocatable=full, allocated={"cpu": "10"}) for name in names)
    )
    await story.submit(policy("p", {"replicaScheduling": AGGREGATED}, selector(), schedulePriority=RANKED))
    await story.write(*(deployment(name, 300, "1") for name in vital))


async def test_choice_among_hundreds_of_victims_is_made_in_portions(story: Story, portions: Portions) -> None:
    names = [f"member{index:03}" for index in range(300)]
    await _shortage(story, names, "vital")
    while not (requests := await story.recorded(preemption_decisions.CapacityWanted)):
        await story.worker.turn()
    offers = [
        links.CapacityOffered(
            key=VITAL,
            number=requests[0].number,
            shard=shard,
            occupants=tuple(
                shapes.Occupant(
                    key=key(f"low{shard}x{index}"),
                    cluster=names[(shard * 64 + index) % len(names)],
                    priority=index % 3,
                    replicas=1,
                    requests={"cpu": "1"},
                )
                for index in range(64)
            ),
        )
        for shard in range(topics.SHARDS)
    ]
    await story.submit(*offers)
    (decided,) = await story.recorded(preemption_decisions.PreemptionDecided)
    assert decided.reason == "TooMany"
    assert portions.are_small()


def test_capacity_requests_are_answered_in_portions(portions: Portions) -> None:
    state = ShardState(3)
    requests = (("cpu", "1"),)
    for index in range(2_000):
        low = state.bindings[f"default/low{index}-deployment"] = Binding(key=f"default/low{index}-deployment")
        low.claim, low.clusters = CLAIM, (("member1", 1),)
        low.declared = Declared(ref(f"low{index}"), "", 1, 0, "", 1, requests)
    for index in range(60):
        vital = key(f"vital{index}")
        state.unanswered_requests[vital] = links.CapacityRequested(
            shard=3, key=vital, number=1, priority=9, clusters=("member1",)
        )
    state.waiting[keys.capacity_key(3)] = Waiting(REQUESTED, Cause(), 0)
    ends: dict[str, int] = dict.fromkeys((*topics.FACT_TOPICS, *topics.OWN_TOPICS), 0)
    step = ShardFold(state, ends, []).decide(Facts(), 1, 10)
    assert step.taken.outputs == 60
    assert portions.are_small()


def test_cost_of_a_waiting_key_does_not_grow_with_their_number() -> None:
    # Time and not lines, since a dict whose first keys were removed takes long to find the next one: with a search for
    # each key, 50 times as many keys take 2,500 times as long. The shortest of several times, since other work only
    # adds to them.
    few_s, many_s = (min(_seconds_to_pop(count) for _ in range(3)) for count in (2_000, 100_000))
    assert many_s < 600 * few_s


def _seconds_to_pop(count: int) -> float:
    """Return the processor time to pop that many waiting keys, some at a time."""
    state = ShardState(0)
    state.waiting = {f"key{index}": Waiting(REQUESTED, Cause(), 0) for index in range(count)}
    began_s = time.process_time()
    while state.waiting:
        assert len(list(waiting_keys.pop(state, 200))) == 200
    return time.process_time() - began_s


def test_cost_of_a_capacity_report_does_not_grow_with_the_waiting_workloads() -> None:
    state = ShardState(0)
    for index in range(20_000):
        state.bindings[f"key{index}"] = Binding(key=f"key{index}", blocked=True)
    ends: dict[str, int] = dict.fromkeys((*topics.FACT_TOPICS, *topics.OWN_TOPICS), 0)
    fold = ShardFold(state, ends, [])
    with lines_run.counted() as lines:
        for offset in range(2_000):
            change = fact_changes.changed(CapacityGrew("member1"), Cause(f"clusters/0/{offset}"), offset)
            affected_keys.queue_affected(state, fold.indexes, fold.deferred, fold.placements, change)
    assert lines.count < 20 * len(state.bindings)
    assert len(state.touched) == len(state.bindings)
    assert all(binding.ready_to_retry for binding in state.bindings.values())


def test_claims_on_a_large_group_are_judged_in_portions(portions: Portions) -> None:
    state, group = ShardState(0), keys.group_key("default", "tier", "a", apart=True)
    names = [f"member{index}" for index in range(3_000)]
    state.groups[group] = WorkloadGroup(apart=True)
    state.groups[group].seats = {key(name): GroupMember(1, (name,)) for name in names}
    for index in range(2_000):
        state.groups[group].seats[key(f"new{index}")] = GroupMember(1, (), (names[index],))
        state.groups[group].open[key(f"new{index}")] = True
    state.waiting[group] = Waiting(GROUP, Cause(), 0)
    ends: dict[str, int] = dict.fromkeys((*topics.FACT_TOPICS, *topics.OWN_TOPICS), 0)
    ShardFold(state, ends, []).decide(Facts(), 1, 10)
    assert all(seat.is_answered != bool(seat.placed) for seat in state.groups[group].seats.values())
    assert portions.are_small()
