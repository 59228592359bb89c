"""Records with a wrong key, partition, topic or type."""

import pytest

from events import codec, decisions, keys, links, records, shapes, topics
from events.validation import verdicts
from tests.builders import log_records
from tests.builders.inputs import policy
from tests.builders.log_records import Partition, envelope
from tests.events.verdicts.deployment import FOO, KEY, applied, content


def test_key_must_belong_to_the_object() -> None:
    partition = Partition.of(applied())
    wrong = records.record("specs", partition.fold.state.partition, "foo", *content(applied()))
    assert log_records.words(partition.take(wrong)) == "misplaced: key: must be 'default/foo-deployment'"


def test_record_must_be_in_the_partition_of_its_key() -> None:
    owner_partition = keys.shard_of(KEY)
    other = Partition("specs", (owner_partition + 1) % topics.SHARDS)
    record = codec.encode(applied(), envelope(), partition=other.fold.state.partition, key=KEY)
    verdict = log_records.words(other.take(record))
    assert verdict == f"misplaced: key: belongs in partition {owner_partition}"
    assert not other.fold.state.heads


@pytest.mark.parametrize(
    "data",
    [
        policy("p"),
        decisions.BindingWithdrawn(key=KEY, reason="x"),
        links.RescheduleAnswered(rebalancer="r", uid="u", generation=1, workload=FOO, result="Successful"),
    ],
    ids=["policy", "decision", "link"],
)
def test_event_must_be_in_its_own_topic(data: shapes.Event) -> None:
    partition = Partition.of(applied())
    record = records.record("specs", partition.fold.state.partition, KEY, *content(data))
    assert log_records.words(partition.take(record)).startswith("misplaced: type: belongs to the topic ")


def test_unknown_type_is_skipped() -> None:
    partition = Partition.of(applied())
    head = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": "com.example.thing.v1"}
    record = log_records.record_of_bytes("specs", head, b"not JSON")
    assert isinstance(partition.take(record), verdicts.Skipped)


def test_engine_event_has_no_input_key() -> None:
    with pytest.raises(TypeError, match="BindingWithdrawn is not an input"):
        verdicts.key_of(decisions.BindingWithdrawn(key=KEY, reason="x"))
