"""Causal order: no effect is numbered before its cause, and unrelated partitions do not wait."""

import itertools
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.log import port
from engine.log.kafka import causal_order
from engine.log.kafka.clients import Slot
from engine.log.local import MemoryLog
from events import topics
from events.records import StoredRecord
from tests.scaleout.step_records import foreign_input, output, step


class PartlyVisibleLog:
    """A log whose partitions are visible only up to some offset, as brokers show them one by one."""

    def __init__(self, log: MemoryLog, visible_ends: Mapping[Slot, int] | None = None) -> None:
        self.log = log
        self.visible_ends = dict(visible_ends or {})
        self.asked = 0

    def ends(self) -> port.Ends:
        ends = {slot: min(end, self.visible_ends.get(slot, end)) for slot, end in self.log.ends().items()}
        return {slot: end for slot, end in ends.items() if end}

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        end = self.ends().get((topic, partition), 0)
        return [
            record for record in await self.log.read(topic, partition, start, limit) if record.offset < end
        ]

    async def passed(self, slots: Sequence[Slot]) -> Mapping[Slot, int]:
        return {slot: self.ends().get(slot, 0) for slot in slots}

    async def written(self, slots: Sequence[Slot]) -> Mapping[Slot, int]:
        self.asked += 1
        return {slot: self.log.ends().get(slot, 0) for slot in slots}


class Numbers:
    """The numbered records, in order of their numbers."""

    def __init__(self, log: PartlyVisibleLog) -> None:
        self.order: list[tuple[Slot, int]] = []
        self._ends: dict[Slot, int] = {}
        self._ordering = causal_order.Ordering(log)

    async def extend(self, times: int = 1) -> list[tuple[Slot, int]]:
        """Number all records that can be numbered; return them."""
        before = len(self.order)
        for _ in range(times):
            for extent in await self._ordering.plan(lambda slot: self._ends.get(slot, 0)):
                assert extent.start == self._ends.get(extent.slot, 0)
                self.order += [(extent.slot, offset) for offset in range(extent.start, extent.end)]
                self._ends[extent.slot] = extent.end
        return self.order[before:]


WORKS: Slot = (topics.WORKS, 0)
STEPS: Slot = (topics.DECISIONS, 3)


async def test_output_waits_for_its_step() -> None:
    log = MemoryLog()
    await log.append([step(3, 1), step(3, 2), output(*WORKS, 3, 1), output(*WORKS, 3, 2)])
    visible_log = PartlyVisibleLog(log, {STEPS: 1})
    sequence = Numbers(visible_log)

    assert await sequence.extend() == [(STEPS, 0), (WORKS, 0)]
    assert await sequence.extend(100) == []
    assert visible_log.asked == 1, "one question for each record that waits"

    del visible_log.visible_ends[STEPS]
    assert await sequence.extend() == [(STEPS, 1), (WORKS, 1)]


class Marked(PartlyVisibleLog):
    """A log with a transaction marker behind each record: offsets are even."""

    def ends(self) -> port.Ends:
        return {slot: 2 * end - 1 for slot, end in super().ends().items()}

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        records = await super().read(topic, partition, (start + 1) // 2, limit)
        return [structs.replace(record, offset=2 * record.offset) for record in records]


async def test_numbering_of_a_waiting_partition_ends_at_a_record_not_a_marker() -> None:
    log = MemoryLog()
    await log.append([step(3, 1), step(3, 2), output(*WORKS, 3, 1), output(*WORKS, 3, 2)])
    extents = await causal_order.Ordering(Marked(log, {STEPS: 1})).plan(lambda _: 0)
    # A reader up to an end beyond the record would get nothing for its last offsets.
    assert [(extent.slot, extent.end) for extent in extents] == [(STEPS, 1), (WORKS, 1)]


async def test_waiting_partition_does_not_delay_others() -> None:
    log = MemoryLog()
    await log.append([step(3, 1), step(4, 1), foreign_input(topics.SPECS, 0)])
    await log.append([output(*WORKS, 3, 1), output(*WORKS, 4, 1), output(topics.WORKS, 1, 4, 1)])
    sequence = Numbers(PartlyVisibleLog(log, {STEPS: 0}))

    numbered = await sequence.extend(5)
    assert numbered == [((topics.SPECS, 0), 0), ((topics.DECISIONS, 4), 0), ((topics.WORKS, 1), 0)]


@pytest.mark.parametrize("topic", [topics.LINKS, topics.REJECTIONS, topics.CLUSTERS, topics.SPECS])
async def test_every_output_waits_for_its_step(topic: str) -> None:
    log = MemoryLog()
    await log.append([step(3, 1), output(topic, 0, 3, 1)])
    visible_log = PartlyVisibleLog(log, {STEPS: 0})
    sequence = Numbers(visible_log)

    assert await sequence.extend(3) == []
    visible_log.visible_ends = {}
    assert await sequence.extend() == [(STEPS, 0), ((topic, 0), 0)]


async def test_step_waits_for_its_inputs() -> None:
    log = MemoryLog()
    await log.append([step(4, 1), output(topics.LINKS, 3, 4, 1), foreign_input(topics.CLUSTERS, 0)])
    await log.append([step(3, 1, {topics.LINKS: 1, topics.CLUSTERS: 1}), output(*WORKS, 3, 1)])
    visible_log = PartlyVisibleLog(log, {(topics.DECISIONS, 4): 0})
    sequence = Numbers(visible_log)

    assert await sequence.extend(3) == [((topics.CLUSTERS, 0), 0)]
    visible_log.visible_ends = {}
    assert [slot[0] for slot, _ in await sequence.extend()] == ["decisions", "links", "decisions", "works"]


async def test_output_of_a_missing_step_is_numbered_at_once() -> None:
    log = MemoryLog()
    await log.append([step(3, 1), output(*WORKS, 3, 99), output(*WORKS, 3, 1), output(*WORKS, 7, 1)])
    sequence = Numbers(PartlyVisibleLog(log))

    assert await sequence.extend(3) == [(STEPS, 0), (WORKS, 0), (WORKS, 1), (WORKS, 2)]


async def test_step_with_missing_inputs_is_numbered_at_once() -> None:
    log = MemoryLog()
    await log.append(
        [step(3, 1, {topics.SPECS: 1_000, topics.LINKS: 3, "nonsense": 5}), output(*WORKS, 3, 1)]
    )
    sequence = Numbers(PartlyVisibleLog(log))

    assert await sequence.extend(2) == [(STEPS, 0), (WORKS, 0)]


async def test_circular_wait_ends() -> None:
    log = MemoryLog()
    # The link names the step that covered it: a forger guessed the number of the next step.
    await log.append([output(topics.LINKS, 3, 3, 1), step(3, 1, {topics.LINKS: 1}), output(*WORKS, 3, 1)])
    sequence = Numbers(PartlyVisibleLog(log))

    assert len(await sequence.extend(3)) == 3
    assert sequence.order.index((STEPS, 0)) < sequence.order.index((WORKS, 0))


async def test_steps_numbered_by_another_replica_delay_nothing() -> None:
    log = MemoryLog()
    await log.append([step(3, 1), output(*WORKS, 3, 1)])
    sequence = Numbers(PartlyVisibleLog(log, {WORKS: 0}))
    await sequence.extend()
    again = Numbers(PartlyVisibleLog(log))
    again._ends = {STEPS: 1}  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # as another replica numbered it

    assert await again.extend(2) == [(WORKS, 0)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
async def test_no_effect_is_numbered_before_its_cause(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # choices of a test
    log = MemoryLog()
    causes: dict[tuple[Slot, int], list[tuple[Slot, int]]] = {}
    numbers = dict.fromkeys(range(3), 0)
    for _ in range(30):
        shard = chance.randrange(3)
        numbers[shard] += 1
        ends = {
            topic: log.ends().get((topic, 0 if topic in topics.FACT_TOPICS else shard), 0)
            for topic in (topics.SPECS, topics.LINKS, topics.CLUSTERS)
        }
        names = (topics.LINKS, topics.WORKS, topics.CLUSTERS, topics.REJECTIONS)
        outputs = [
            output(name, chance.randrange(3) if name in names[:2] else 0, shard, numbers[shard], index)
            for index, name in enumerate(chance.choices(names, k=chance.randrange(4)), 1)
        ]
        stored = await log.append(
            [step(shard, numbers[shard], ends), *outputs, foreign_input(topics.SPECS, shard)]
        )
        step_position, *others = [((record.topic, record.partition), record.offset) for record in stored[:-1]]
        causes |= {effect: [step_position] for effect in others}
        causes[step_position] = [
            ((topic, 0 if topic in topics.FACT_TOPICS else shard), offset)
            for topic, end in ends.items()
            for offset in range(end)
        ]
    visible_log = PartlyVisibleLog(log, dict.fromkeys(log.ends(), 0))
    sequence = Numbers(visible_log)
    while any(visible_log.visible_ends[slot] < end for slot, end in log.ends().items()):
        slot = chance.choice(sorted(visible_log.visible_ends))
        visible_log.visible_ends[slot] += chance.randrange(6)
        await sequence.extend(chance.randrange(3))
    await sequence.extend(2)

    number_of = {position: number for number, position in enumerate(sequence.order)}
    assert len(number_of) == sum(log.ends().values())
    late = [
        (cause, effect)
        for effect, effect_causes in causes.items()
        for cause in effect_causes
        if number_of[cause] > number_of[effect]
    ]
    assert late == []
    assert all(a < b for a, b in itertools.pairwise(sorted(number_of.values())))
