"""Views show the outputs of valid steps only, even if outputs precede their steps in the log."""

import asyncio
import random
from collections.abc import Sequence, Sized
from pathlib import Path

import pytest

from engine.log.local import MemoryLog
from engine.simulation.specs import joined_event
from events import (
    chain,
    codec,
    decisions,
    ids,
    keys,
    outputs,
    records,
    rejections,
    shapes,
    topics,
    works,
)
from events.records import Record
from events.validation import manifests
from projections import changes
from projections import works as works_view
from projections.port import ResultRow
from projections.runner import Projector
from projections.store import FILE, Store
from tests.members import examples
from tests.projections.logs import RecordBuilder
from tests.projections.stories import Story

SHARD = 3
KEY = examples.key_of("web")


def work(replicas: int, step: int = 1) -> works.WorkApplied:
    return examples.applied("web", replicas, step=step)


async def folded(*batches: Sequence[Record], path: Path | None = None) -> dict[str, list[ResultRow]]:
    """Return the tables after these records; with a path the views are reopened after each batch."""
    log = MemoryLog()
    for batch in batches:
        await log.append(batch)
        if path is not None:
            await _fold(log, path)
    return await _fold(log, path)


async def _fold(log: MemoryLog, path: Path | None) -> dict[str, list[ResultRow]]:
    store = await asyncio.to_thread(Store, path)
    projector = Projector(log, store, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()
    tables = await asyncio.to_thread(store.dump)
    await asyncio.to_thread(store.close)
    return tables


def shown(tables: dict[str, list[ResultRow]]) -> list[tuple[int | None, int]]:
    """Return replicas and number of each work."""
    decoded = [works_view.decode(body) for *_, body in tables["works"]]
    return [(decoded_work.replicas, decoded_work.number) for decoded_work in decoded]


@pytest.mark.parametrize("is_bare", [False, True])
async def test_work_before_its_step_takes_effect_with_the_step(tmp_path: Path, *, is_bare: bool) -> None:
    builder = RecordBuilder(is_bare=is_bare)
    first, second = builder.step(SHARD, [work(1)]), builder.step(SHARD, [work(2, step=2)])
    batches = (
        [first[0], first[1]],
        [second[1]],
        [builder.input(joined_event(examples.member()))],
        [second[0]],
    )

    tables = await folded(*batches, path=tmp_path / FILE)

    assert shown(tables) == [(2, 5)]
    numbers = [
        int(str(stored_number)) // changes.POSITIONS_PER_NUMBER
        for stored_number, kind, *_ in tables["changes"]
        if kind == changes.STORED[changes.WORK]
    ]
    assert numbers == [2, 5]
    assert tables == await folded(*batches)
    assert not tables["early"]
    assert not tables["foreign_works"]
    assert not tables["awaited"]


async def test_removal_before_its_step_takes_effect_with_the_step() -> None:
    builder = RecordBuilder()
    first, second = builder.step(SHARD, [work(1)]), builder.step(SHARD, [examples.removed("web")])
    tables = await folded(first, [second[1], second[0]])
    assert shown(tables) == []


async def test_late_work_of_an_older_step_is_no_change() -> None:
    builder = RecordBuilder()
    first, second = builder.step(SHARD, [work(1)]), builder.step(SHARD, [work(2, step=2)])
    tables = await folded([first[0], *second, first[1]])
    assert shown(tables) == [(2, 3)]
    changed = [int(str(row[0])) // changes.POSITIONS_PER_NUMBER for row in tables["changes"]]
    assert changed == [3]


async def test_forged_work_with_the_id_of_a_valid_step_is_not_shown() -> None:
    builder = RecordBuilder()
    batch = builder.step(SHARD, [work(1), decisions.BindingWithdrawn(key=KEY, reason="TemplateDeleted")])
    for index in (1, 2, 3):
        forged = _with_id(batch[1], ids.output_id(SHARD, 1, 1, index), work(99))
        tables = await folded([batch[0], forged, *batch[1:], forged])
        assert shown(tables) == [(1, 3)]
        assert tables["foreign_works"] == [(forged.partition, 0), (forged.partition, 2)]


async def test_forged_decision_with_the_id_of_the_last_step_is_ignored() -> None:
    builder = RecordBuilder()
    first = builder.step(SHARD, [decisions.BindingWithdrawn(key="a", reason="x"), work(1)])
    forged = decisions.BindingWithdrawn(key="default/foo-deployment", reason="forged")
    for index in (2, 3):
        record = _with_id(first[1], ids.output_id(SHARD, 1, 1, index), forged)
        links = chain.Chain(SHARD)
        taken = [links.take(records.stored(output, 0, 0), _data(output)) for output in (*first[:2], record)]
        assert taken == [True, True, False]


async def test_foreign_step_does_not_separate_a_step_from_its_outputs() -> None:
    builder, links = RecordBuilder(), chain.Chain(SHARD)
    batch = builder.step(SHARD, [decisions.BindingWithdrawn(key="a", reason="x")])
    foreign = RecordBuilder().step(SHARD, [], term=9)[0]
    taken = [
        links.take(records.stored(record, 0, 0), _data(record)) for record in (batch[0], foreign, batch[1])
    ]
    assert taken == [True, False, True]


async def test_repeated_work_has_no_effect() -> None:
    for is_bare in (False, True):
        builder = RecordBuilder(is_bare=is_bare)
        first, second = builder.step(SHARD, [work(1)]), builder.step(SHARD, [work(2, step=2)])
        assert shown(await folded([*first, *second, first[1]])) == [(2, 4)]


async def test_rejection_without_a_step_is_not_shown() -> None:
    builder = RecordBuilder()
    rejected = rejections.InputRejected(
        verdict="refused", reason="r", field="f", topic="specs", partition=0, offset=0, key="k"
    )
    batch = builder.step(SHARD, [rejected])
    forged = _with_id(batch[1], ids.output_id(SHARD, 1, 7, 1), rejected)
    assert len((await folded([forged, *batch, forged]))["rejections"]) == 1


async def test_works_without_steps_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("events.outputs.EARLY_MAX", 3)
    builder = RecordBuilder()
    like = builder.step(SHARD, [work(1)])[1]
    forged = [_with_id(like, ids.output_id(SHARD, 1, step, 1), work(step)) for step in range(10, 20)]
    tables = await folded(forged)
    assert [number for number, *_ in tables["early"]] == [8, 9, 10]
    assert shown(tables) == []


def test_records_of_steps_that_never_come_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("events.outputs.EARLY_MAX", 3)
    like = RecordBuilder().step(SHARD, [work(1)])[1]
    expected = outputs.Outputs((topics.WORKS,), {SHARD: chain.Chain(SHARD)})
    for step in range(10, 60):
        forged = _with_id(like, ids.output_id(SHARD, 1, step, 1), work(step))
        expected.keep(records.stored(forged, step, step))
    sizes = {name: len(field) for name, field in vars(expected).items() if isinstance(field, Sized)}
    assert max(sizes.values()) == 3


@pytest.mark.parametrize("seed", range(6))
async def test_log_with_outputs_before_steps_gives_the_same_views(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # a seed makes it the same each time
    story = Story(seed)
    ordered = [*story.opening()]
    for _ in range(60):
        ordered += story.more()
    disordered: list[Record] = []
    for record in ordered:
        # A work moves up to ten records, beyond its step, and never past a work of its own cluster.
        position = len(disordered)
        if record.topic == topics.WORKS:
            least = max(
                (i + 1 for i, moved in enumerate(disordered) if moved.topic == topics.WORKS), default=0
            )
            position = max(least, position - chance.randrange(10))
        disordered.insert(position, record)
    assert disordered != ordered

    tables, expected = await folded(disordered), await folded(ordered)
    assert [_without_numbers(row) for row in tables["works"]] == [
        _without_numbers(row) for row in expected["works"]
    ]
    # Outputs of a stale owner wait for a step that never comes, in either log.
    assert [row[5:] for row in tables["early"]] == [row[5:] for row in expected["early"]]


def _without_numbers(row: ResultRow) -> object:
    decoded = works_view.decode(row[-1])
    fields = decoded.template, decoded.replicas, decoded.term, decoded.step
    return *fields, decoded.suspended, decoded.generation


def _with_id(like: Record, output: str, data: shapes.Event) -> Record:
    value = codec.encode_data(data)
    headers = {**like.headers, "ce_id": output, "ce_type": data.event_type.type}
    key = getattr(data, "cluster", like.key)
    partition = keys.shard_of(key) if like.topic == topics.WORKS else like.partition
    return records.record(like.topic, partition, key, headers, value)


def _data(record: Record) -> shapes.Event:
    decoded = codec.decode(record)
    assert isinstance(decoded, codec.Decoded)
    return decoded.data
