"""Records: a checksum of all parts, CloudEvents attributes in headers, and the nesting of JSON."""

from datetime import UTC, datetime

import msgspec
import pytest
from cloudevents.core.bindings import kafka
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from events import clusters, codec, records
from events.records import Envelope

HEADERS = {"ce_id": "1", "ce_source": "/a"}


def checksum(
    topic: str = "specs",
    partition: int = 1,
    key: str = "a",
    headers: dict[str, str] = HEADERS,
    value: bytes = b"{}",
) -> bytes:
    return records.record(topic, partition, key, headers, value).checksum


def test_each_part_changes_the_checksum() -> None:
    changed = {
        checksum(),
        checksum(topic="health"),
        checksum(partition=2),
        checksum(key="b"),
        checksum(headers={**HEADERS, "ce_id": "2"}),
        checksum(headers={}),
        checksum(value=b"[]"),
    }
    assert len(changed) == 7
    assert checksum() == checksum()
    assert all(len(digest) == records.CHECKSUM_BYTES for digest in changed)


def test_bytes_moved_between_parts_change_the_checksum() -> None:
    # Without the key's length these would be the same bytes in the same order.
    first = checksum(key="a", headers={}, value=b"{}\0rest")
    other = checksum(key="a\0{}", headers={}, value=b"rest")
    assert first != other


@given(st.binary(min_size=1, max_size=200), st.data())
def test_flipped_bit_changes_the_checksum(value: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    flipped = bytearray(value)
    flipped[bit // 8] ^= 1 << bit % 8
    assert checksum(value=bytes(flipped)) != checksum(value=value)


def test_stored_record_keeps_its_checksum_and_has_a_position() -> None:
    record = records.record("specs", 3, "a", HEADERS, b"{}")
    stored = records.stored(record, 17, 42)
    assert stored.checksum == record.checksum
    assert stored.headers == HEADERS
    assert str(stored.position) == "specs/3/17"
    assert stored.position < records.Position("specs", 3, 18) < records.Position("specs", 4, 0)


WORD = st.text(min_size=1, max_size=20)
EXTENSIONS = ("traceparent", "tracestate", "correlationid", "causationid")


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    # The SDK inserts the present time if there is none, so there always is one.
    time = draw(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  # it adds the zone
    return Envelope(
        id=draw(WORD),
        source=draw(WORD),
        type="io.reballast.cluster-left.v1",
        subject=draw(st.just("") | WORD),
        time=time.isoformat().replace("+00:00", "Z"),
        dataschema=draw(st.just("") | WORD),
        **{name: draw(st.just("") | WORD) for name in EXTENSIONS},
    )


def as_sdk(head: Envelope, data: dict[str, object]) -> CloudEvent:
    attributes: dict[str, object] = {"specversion": "1.0", "datacontenttype": "application/json"}
    for name in records.ATTRIBUTES:
        text = str(getattr(head, name))
        if text:
            attributes[name] = datetime.fromisoformat(text) if name == "time" else text
    return CloudEvent(attributes=attributes, data=data)


def as_record(message: kafka.KafkaMessage) -> records.Record:
    headers = {name: text.decode() for name, text in message.headers.items()}
    return records.record("clusters", 0, "member1", headers, message.value)


@given(envelopes())
def test_events_of_the_sdk_are_decoded(head: Envelope) -> None:
    event = as_sdk(head, {"name": "member1", "expects": 3})
    expected = codec.Decoded(head, clusters.ClusterLeft(name="member1", expects=3))
    for message in (kafka.to_binary_event(event), kafka.to_structured_event(event)):
        assert codec.decode(as_record(message)) == expected


@given(envelopes())
def test_encoded_events_are_read_by_the_sdk(head: Envelope) -> None:
    record = codec.encode(clusters.ClusterLeft(name="member1"), head, partition=0, key="member1")
    message = kafka.KafkaMessage(
        headers={name: text.encode() for name, text in record.headers.items()},
        key=record.key.encode(),
        value=record.value,
    )
    event = kafka.from_kafka_event(message)

    assert event.get_data() == {"name": "member1"}
    assert event.get_id() == head.id
    assert event.get_source() == head.source
    assert event.get_type() == "io.reballast.cluster-left.v1"
    assert event.get_subject() == (head.subject or None)
    assert event.get_dataschema() == (head.dataschema or None)
    time = event.get_time()
    assert time is not None
    assert time.isoformat().replace("+00:00", "Z") == head.time
    for name in EXTENSIONS:
        assert event.get_extension(name) == (getattr(head, name) or None)


def test_absent_attributes_have_no_header() -> None:
    headers = records.to_headers(Envelope(id="1", source="/a", type="t"))
    assert headers == {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": "t"}


@given(envelopes())
def test_headers_round_trip(head: Envelope) -> None:
    assert records.from_headers(records.to_headers(head)) == head


def test_unknown_extensions_are_ignored() -> None:
    head = Envelope(id="1", source="/a", type="t")
    assert records.from_headers({**records.to_headers(head), "ce_partitionkey": "x", "other": "y"}) == head


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{}"\\a\u20ac'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\'), inner, max_size=3),
    max_leaves=20,
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return 0


@given(JSON, st.integers(0, 8))
def test_depth_of_bytes_equals_depth_of_the_value(value: object, levels: int) -> None:
    assert records.is_deeper(msgspec.json.encode(value), levels) == (depth_of(value) > levels)


@given(st.binary(max_size=200) | st.text(alphabet='[]{}"\\a').map(str.encode), st.integers(0, 5))
def test_depth_of_any_bytes_is_computed(value: bytes, levels: int) -> None:
    assert records.is_deeper(value, levels) in {True, False}


@pytest.mark.parametrize(
    "value",
    [b"[" * 2_000_000, b"[]" * 1_000_000, b'"\\' * 1_000_000, b'{"a":' * 400_000, b'[["' * 600_000],
    ids=["open", "flat", "quotes", "objects", "mixed"],
)
def test_depth_of_two_megabytes_of_brackets_is_computed_in_linear_time(value: bytes) -> None:
    # The time limit of the test suffices; a quadratic search would take hours.
    assert records.is_deeper(value, 64) == (value[:2] != b"[]" and value[:1] != b'"')
