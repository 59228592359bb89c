"""Decoding of bytes into events, or into a reason why they are none; no other outcome."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import catalogue, codec, limits, records
from events.records import ATTRIBUTES
from tests.builders import inputs, log_records
from tests.golden.samples import table

HEADERS = {
    "ce_specversion": "1.0",
    "ce_id": "1",
    "ce_source": "/a",
    "ce_type": "io.reballast.cluster-left.v1",
}
STRUCTURED = {"content-type": "application/cloudevents+json"}
LEFT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/a",
    "type": "io.reballast.cluster-left.v1",
    "data": {"name": "member1"},
}


def decode(
    headers: dict[str, str], value: bytes, key: str = "k"
) -> codec.Decoded | codec.Malformed | codec.Unknown:
    return codec.decode(records.record("clusters", 0, key, headers, value))


def decode_structured(**changed: object) -> codec.Decoded | codec.Malformed | codec.Unknown:
    event = {name: value for name, value in {**LEFT, **changed}.items() if value is not ...}
    return decode(STRUCTURED, json.dumps(event).encode())


def fault(decoded: codec.Decoded | codec.Malformed | codec.Unknown) -> str:
    assert isinstance(decoded, codec.Malformed), decoded
    return f"{decoded.field}: {decoded.reason}"


@pytest.mark.parametrize("event_type", catalogue.BY_TYPE)
def test_every_type_is_decoded_in_both_modes(event_type: str) -> None:
    data, head = table.SAMPLES[event_type], table.envelope_of(event_type)
    binary = codec.encode(data, head, partition=0, key="k")
    assert codec.decode(binary) == codec.Decoded(head, data)

    attributes = {"specversion": "1.0", **msgspec.to_builtins(head)}
    value = msgspec.json.encode({**attributes, "data": msgspec.Raw(codec.encode_data(data))})
    structured = log_records.record_of_bytes(binary.topic, STRUCTURED, value)
    assert codec.decode(structured) == codec.Decoded(head, data)


def test_equal_data_is_encoded_to_equal_bytes() -> None:
    step = table.SAMPLES["io.reballast.step-taken.v1"]
    assert isinstance(step, msgspec.Struct)
    turned = msgspec.structs.replace(step, ends={"specs": 9, "clusters": 4})
    assert codec.encode_data(step) == codec.encode_data(turned)


def test_event_type_follows_from_the_data() -> None:
    record = log_records.record(inputs.deployment("foo"))
    assert (
        record.headers["ce_type"]
        == inputs.deployment("foo").event_type.type
        == "io.reballast.template-applied.v1"
    )


@pytest.mark.parametrize(
    "content_type", ["application/cloudevents+json; charset=utf-8", "Application/CloudEvents+JSON"]
)
def test_media_type_may_have_parameters_and_any_case(content_type: str) -> None:
    decoded = decode({"content-type": content_type}, json.dumps(LEFT).encode())
    assert isinstance(decoded, codec.Decoded)


def test_structured_data_may_be_base64() -> None:
    decoded = decode_structured(data=..., data_base64=base64.b64encode(b'{"name":"member1"}').decode())
    assert decoded == decode_structured()
    assert fault(decode_structured(data=..., data_base64="%")).startswith("envelope: ")


def test_null_attribute_counts_as_absent() -> None:
    assert decode_structured(subject=None, time=None) == decode_structured()
    assert fault(decode_structured(id=None)) == "envelope: id: required"


@pytest.mark.parametrize("event_type", ["io.reballast.cluster-left.v2", "com.example.order-placed"])
def test_unknown_type_or_version_is_decoded_as_unknown(event_type: str) -> None:
    decoded = decode({**HEADERS, "ce_type": event_type}, b"\xff not even JSON")
    assert isinstance(decoded, codec.Unknown)
    assert decoded.envelope.type == event_type


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"data": ...}, "data: Expected `object`, got `null`"),
        ({"data": None}, "data: Expected `object`, got `null`"),
        ({"data": []}, "data: Expected `object`, got `array`"),
        ({"data": {}}, "name: required"),
        ({"data": {"name": 7}}, "name: Expected `str`, got `int`"),
        ({"data": {"name": "a", "expects": "1"}}, "expects: Expected `int | null`, got `str`"),
        ({"data": {"name": "a", "expects": 1.5}}, "expects: Expected `int | null`, got `float`"),
        ({"data": {"name": "a", "expects": True}}, "expects: Expected `int | null`, got `bool`"),
        ({"data": {"name": "a", "expects": -1}}, "expects: Expected `int` >= 0"),
        ({"data": {"name": "a", "expects": 2**63}}, "expects: Expected `int` <= 9223372036854775807"),
        ({"data": {"name": "a", "expects": 10**30}}, "expects: Expected `int` <= 9223372036854775807"),
        ({"specversion": "0.3"}, "envelope: specversion: expected '1.0', got '0.3'"),
        ({"source": ...}, "envelope: source: required"),
        ({"time": 5}, "envelope: time: expected text, got int"),
        ({"id": "x" * limits.HEADER_BYTES_MAX}, "envelope: attributes of 16414 bytes; at most 16384 are taken"),
    ],
)  # fmt: skip
def test_malformed_event_names_its_field(changed: dict[str, object], expected: str) -> None:
    assert fault(decode_structured(**changed)) == expected


def test_nested_field_is_named_by_its_path() -> None:
    head = {**HEADERS, "ce_type": "io.reballast.cluster-tainted.v1"}
    assert fault(decode(head, b'{"name":"a","taint":{"key":"k"}}')) == "taint.effect: required"
    head["ce_type"] = "io.reballast.cluster-joined.v1"
    value = b'{"name":"a","taints":[{"key":"k","effect":"e","timeAddedMs":1e30}]}'
    assert fault(decode(head, value)).startswith("taints[0].timeAddedMs: ")


def test_malformed_data_keeps_its_envelope() -> None:
    malformed = decode(HEADERS, b"{}")
    assert isinstance(malformed, codec.Malformed)
    assert malformed.envelope is not None
    assert (malformed.envelope.id, malformed.envelope.source) == ("1", "/a")


def test_exceeded_limit_is_named() -> None:
    value = b'{"name":"%s"}' % (b"x" * limits.RECORD_BYTES_MAX)
    assert fault(decode(HEADERS, value)) == f"data: {len(value)} bytes; at most 2097152 are taken"
    assert fault(decode(HEADERS, b"{}", "\u20ac" * 342)) == "key: 1026 bytes; at most 1024 are taken"
    long = {**HEADERS, "ce_subject": "x" * limits.HEADER_BYTES_MAX}
    assert fault(decode(long, b"{}")).startswith("headers: ")
    assert isinstance(decode(HEADERS, b'{"name":"a"}', "x" * limits.KEY_BYTES_MAX), codec.Decoded)


@pytest.mark.parametrize("headers", [HEADERS, STRUCTURED])
def test_deep_nesting_is_malformed(headers: dict[str, str]) -> None:
    for value in (b"[" * 500_000, b'{"data":' * 200_000, b"[" * 200_000 + b"]" * 200_000):
        assert isinstance(decode(headers, value), codec.Malformed)


NAMES = st.sampled_from([*(f"ce_{name}" for name in ("specversion", *ATTRIBUTES)), "content-type"]) | st.text(
    max_size=5
)
WORDS = st.sampled_from(["1.0", "application/json", *STRUCTURED.values(), *catalogue.BY_TYPE]) | st.text(
    max_size=10
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ANY_EVENT = st.fixed_dictionaries(
    {},
    optional={
        "specversion": st.just("1.0") | ANY_JSON,
        "id": st.text(max_size=3) | ANY_JSON,
        "source": st.text(max_size=3) | ANY_JSON,
        "type": st.sampled_from(list(catalogue.BY_TYPE)) | ANY_JSON,
        "time": ANY_JSON,
        "data": ANY_JSON,
        "data_base64": ANY_JSON,
    },
).map(lambda value: json.dumps(value).encode())


@given(st.dictionaries(NAMES, WORDS, max_size=6), st.binary(max_size=50) | ANY_EVENT, st.text(max_size=5))
def test_any_record_is_decoded_malformed_or_unknown(headers: dict[str, str], value: bytes, key: str) -> None:
    decoded = decode(headers, value, key)
    assert isinstance(decoded, codec.Decoded | codec.Malformed | codec.Unknown)


@given(ANY_EVENT)
def test_any_structured_event_is_decoded_malformed_or_unknown(value: bytes) -> None:
    assert isinstance(decode(STRUCTURED, value), codec.Decoded | codec.Malformed | codec.Unknown)


@given(st.sampled_from(list(table.SAMPLES)), st.data())
def test_record_with_one_changed_byte_is_decoded_or_malformed(event_type: str, data: st.DataObject) -> None:
    value = bytearray(codec.encode_data(table.SAMPLES[event_type]))
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    decoded = decode({**HEADERS, "ce_type": event_type}, bytes(value))
    assert isinstance(decoded, codec.Decoded | codec.Malformed)
