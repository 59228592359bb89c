"""Hostile records in input partitions: the fold reaches a verdict, and the engine continues."""

import json
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.deciders import fact_changes
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import ShardState
from events import catalogue, keys, kube_objects, records, topics
from events.json_values import as_object, list_at
from events.records import StoredRecord
from events.validation import manifests, verdicts
from tests.golden import files
from tests.golden.samples import table, values

INPUTS: Final = (*topics.FACT_TOPICS, *topics.OWN_TOPICS)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 2**31, 2**63, 2**64, 10**40, 0.5, 1e300])
    | st.text(max_size=8)
    | st.sampled_from(["", "\0", "a/b", "A", "-", "1e99", "Deployment", "default", "x" * 300])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SAMPLES: Final = {
    event_type: {**json.loads(files.load(files.path_of(event_type)).value), "expects": None}
    for event_type, entry in catalogue.BY_TYPE.items()
    if entry.topic in INPUTS
}


def paths_of(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all values in a JSON value; list indexes as text."""
    return [
        path,
        *(deeper for name, item in items(value).items() for deeper in paths_of(item, (*path, name))),
    ]


def items(value: object) -> dict[str, object]:
    return as_object(value) or {str(index): item for index, item in enumerate(list_at(value))}


def with_value(value: object, path: tuple[str, ...], new: object) -> object:
    """Return the JSON value with another one at a path; ``...`` removes it."""
    if not path:
        return None if new is ... else new
    first, *rest = path
    copied = dict(items(value))
    if rest or new is not ...:
        copied[first] = with_value(copied[first], tuple(rest), new)
    else:
        del copied[first]
    return copied if isinstance(value, dict) else list(copied.values())


def same_type_values(value: object, path: tuple[str, ...]) -> st.SearchStrategy[object]:
    """Values of the type at a path."""
    for name in path:
        value = items(value)[name]
    match value:
        case str():
            words = ["a", "b", "B", "a.b", "a:b", "1", "v1", "apps/v1", "cpu", "10m", "NoSchedule", "x" * 300]
            return st.sampled_from(words) | st.text(max_size=3)
        case int():
            return st.integers(-2, 2) | st.sampled_from([2**31 - 1, 2**62, 2**63 - 1, 2**64])
        case dict():
            return st.dictionaries(
                st.sampled_from(["cpu", "pods", "a"]), st.sampled_from(["1", "-1", "2Ei", "1e40"])
            )
        case _:
            return st.just([])


def stored(event_type: str) -> StoredRecord:
    """Return the sample of a type with another id than the golden record."""
    golden = files.record_of(files.load(files.path_of(event_type)))
    value = json.dumps(SAMPLES[event_type]).encode()
    record = records.record(
        golden.topic, golden.partition, golden.key, {**golden.headers, "ce_id": "0"}, value
    )
    return records.stored(record, 0, 0)


BEFORE: Final = [
    stored(f"io.reballast.{name}.v1")
    for name in (
        "cluster-joined",
        "capacity-reported",
        "policy-applied",
        "template-applied",
        "namespace-applied",
        "interpreter-applied",
        "rebalancer-applied",
    )
]
"""Records that precede hostile ones in their partitions."""


@st.composite
def hostile_records(draw: st.DrawFn) -> StoredRecord:
    """A sample with one value changed or removed, often with the key and partition of the changed event."""
    event_type = draw(st.sampled_from(list(SAMPLES)))
    topic = catalogue.BY_TYPE[event_type].topic
    path = draw(st.sampled_from(paths_of(SAMPLES[event_type])))
    data = with_value(
        SAMPLES[event_type], path, draw(st.just(...) | same_type_values(SAMPLES[event_type], path) | VALUES)
    )
    head = {
        "specversion": "1.0",
        "id": draw(st.text(min_size=1, max_size=2)),
        "source": "/a",
        "type": event_type,
    }
    if draw(st.integers(0, 9)) == 0:
        head["time"] = draw(st.text(max_size=5) | st.just("9999-12-31T23:59:59Z"))
    if draw(st.booleans()):
        headers = {"content-type": "application/cloudevents+json"}
        value = json.dumps({**head, "data": data}).encode()
    else:
        headers = {f"ce_{name}": text for name, text in head.items()}
        value = json.dumps(data).encode()
    key = own_key(event_type, value) if draw(st.integers(0, 9)) else draw(st.text(max_size=8))
    if draw(st.integers(0, 9)) == 0:
        topic = draw(st.sampled_from(INPUTS))
    partition = keys.partition_of(key, topics.TOPICS[topic].partitions)
    return records.stored(records.record(topic, partition, key, headers, value), 0, 0)


def own_key(event_type: str, value: bytes) -> str:
    """Return the key of the event, if it can be determined."""
    struct = catalogue.BY_TYPE[event_type].struct
    try:
        data = msgspec.json.decode(value, type=struct)
        manifest = getattr(data, "manifest", None)
        read = kube_objects.read_head(manifest) if isinstance(manifest, msgspec.Raw) else None
        return verdicts.key_of(data, read)
    except (msgspec.MsgspecError, kube_objects.Refusal):
        return table.place_of(table.SAMPLES[event_type])[0]


@given(st.lists(hostile_records(), max_size=4))
def test_every_record_gets_the_same_verdict_twice(hostile: list[StoredRecord]) -> None:
    # One fold per topic suffices, since a verdict depends on the record's partition, not on the fold's.
    first, again = (
        [verdicts.PartitionFold(verdicts.PartitionState("", 0), manifests.check) for _ in INPUTS]
        for _ in range(2)
    )
    for offset, stored in enumerate(BEFORE + hostile):
        record = msgspec.structs.replace(stored, offset=offset)
        index = INPUTS.index(record.topic)
        verdict = first[index].take(record)
        assert isinstance(verdict, verdicts.Taken | verdicts.Refused | verdicts.Skipped)
        assert again[index].take(record) == verdict
        if isinstance(verdict, verdicts.Refused):
            assert verdict.verdict in {"late", "repeated", "misplaced", "refused"}
            assert verdict.field
            assert verdict.reason
            assert len(verdict.reason) < 1_000


@settings(max_examples=60)
@given(st.lists(hostile_records(), min_size=1, max_size=6))
def test_engine_folds_hostile_records_and_takes_its_step(hostile: list[StoredRecord]) -> None:
    shards = {
        shard: ShardFold(
            ShardState(shard=shard),
            dict.fromkeys(INPUTS, 0),
            [verdicts.PartitionState(topic, shard) for topic in topics.OWN_TOPICS],
        )
        for shard in range(topics.SHARDS)
    }
    facts = Facts()
    ends: dict[tuple[str, int], int] = {}
    for stored in BEFORE + hostile:
        at = stored.topic, stored.partition
        record = msgspec.structs.replace(stored, offset=ends.get(at, 0))
        ends[at] = record.offset + 1
        if record.topic in topics.FACT_TOPICS:
            folded = fact_changes.folded([record], facts.take(record))
            for shard in shards.values():
                list(shard.follow(folded))
        else:
            shards[record.partition].take(record)
    for shard in shards.values():
        step = shard.decide(facts, values.AT_MS, 1_000)
        assert len(step.records) == step.taken.outputs + 1


@pytest.mark.parametrize("event_type", SAMPLES)
def test_samples_are_well_formed(event_type: str) -> None:
    record = files.record_of(files.load(files.path_of(event_type)))
    fold = verdicts.PartitionFold(verdicts.PartitionState(record.topic, record.partition), manifests.check)
    verdict = fold.take(records.stored(record, 0, 0))
    if isinstance(verdict, verdicts.Refused):
        # Only the object that it deletes or changes is missing.
        assert verdict.verdict == "late" or verdict.field == "name"
