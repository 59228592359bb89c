"""Interoperability of envelopes with the official CloudEvents SDK, in both modes and directions."""

from datetime import UTC, datetime

from cloudevents.core.bindings import kafka
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from events import clusters, codec, envelope, records
from events.envelope import Envelope

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
    for name in envelope.ATTRIBUTES:
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
    headers = envelope.to_headers(Envelope(id="1", source="/a", type="t"))
    assert headers == {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": "t"}


@given(envelopes())
def test_headers_round_trip(head: Envelope) -> None:
    assert envelope.from_headers(envelope.to_headers(head)) == head


def test_unknown_extensions_are_ignored() -> None:
    head = Envelope(id="1", source="/a", type="t")
    assert envelope.from_headers({**envelope.to_headers(head), "ce_partitionkey": "x", "other": "y"}) == head
