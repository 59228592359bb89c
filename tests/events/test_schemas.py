"""The exported schemas suffice to write a producer in any language."""

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from events import catalogue, codec, records, schemas, topics
from events.json_values import as_object, list_at, object_at
from tests.events import generating
from tests.events.json_schemas import is_valid
from tests.golden import files

SCHEMAS = schemas.json_schemas()
DOCUMENT = schemas.asyncapi("0.1.0")
INPUTS = [
    entry.type
    for entry in catalogue.EVENT_TYPES
    if entry.topic in {"specs", "policies", "clusters", "health"}
]


def at(value: object, *path: str) -> dict[str, object]:
    for name in path:
        value = object_at(value)[name]
    nested = as_object(value)
    assert nested is not None, path
    return nested


@pytest.mark.parametrize("event_type", catalogue.BY_TYPE)
def test_golden_record_is_valid_and_a_broken_one_is_not(event_type: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[event_type])
    data = json.loads(files.load(files.path_of(event_type)).value)
    schema = SCHEMAS[event_type]
    assert is_valid(schema, data)

    assert not is_valid(schema, [data])
    assert not is_valid(schema, {})
    for name in list_at(schema, "required"):
        assert not is_valid(schema, {key: value for key, value in data.items() if key != name})
    for name in data.keys() - {"manifest", "placement"}:
        assert not is_valid(schema, {**data, name: 7.5})


@pytest.mark.parametrize("event_type", catalogue.BY_TYPE)
def test_schema_and_codec_agree_on_numbers(event_type: str) -> None:
    data = json.loads(files.load(files.path_of(event_type)).value)
    for name, value in data.items():
        for number in (-1, 2**31, 2**63, 10**30, 0.5):
            if isinstance(value, int) and not isinstance(value, bool):
                changed = {**data, name: number}
                valid = is_valid(SCHEMAS[event_type], changed)
                assert isinstance(decode(event_type, changed), codec.Decoded) == valid, (name, number)


def decode(event_type: str, data: object) -> codec.Decoded | codec.Malformed | codec.Unknown:
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": event_type}
    return codec.decode(records.record("specs", 0, "k", headers, json.dumps(data).encode()))


@pytest.mark.parametrize("event_type", INPUTS)
def test_data_allowed_by_the_schema_is_decoded(event_type: str) -> None:
    schema = SCHEMAS[event_type]

    @given(generating.values(SCHEMAS[event_type]))
    def reads(data: object) -> None:
        assert is_valid(schema, data)
        assert isinstance(decode(event_type, data), codec.Decoded)

    reads()


OTHERS: st.SearchStrategy[object] = st.sampled_from(
    [None, True, -1, 0, 2**31, 2**63, 0.5, "", "a", [], ["a"], {}]
)


@given(st.sampled_from(INPUTS), st.data())
def test_decoded_data_is_allowed_by_the_schema(event_type: str, draw: st.DataObject) -> None:
    data = json.loads(files.load(files.path_of(event_type)).value)
    name = draw.draw(st.sampled_from(sorted(data)))
    data[name] = draw.draw(OTHERS)
    if isinstance(decode(event_type, data), codec.Decoded):
        assert is_valid(SCHEMAS[event_type], data)


def test_every_type_has_a_schema() -> None:
    assert SCHEMAS.keys() == catalogue.BY_TYPE.keys()
    for event_type, schema in SCHEMAS.items():
        assert schema["$id"] == f"urn:reballast:{event_type}"


# AsyncAPI 3.0: the fields that the specification requires of each object in the document.


def references(value: object) -> Iterator[str]:
    if (fields := as_object(value)) is not None:
        if isinstance(reference := fields.get("$ref"), str):
            yield reference
        for item in fields.values():
            yield from references(item)
    for item in list_at(value):
        yield from references(item)


def test_document_has_the_fields_required_by_asyncapi() -> None:
    assert re.fullmatch(r"3\.0\.\d+", str(DOCUMENT["asyncapi"]))
    assert {"title", "version"} <= at(DOCUMENT, "info").keys()
    assert set(DOCUMENT) <= {
        "asyncapi", "id", "info", "servers", "defaultContentType", "channels", "operations", "components",
    }  # fmt: skip
    for names in (at(DOCUMENT, "components", "messages"), at(DOCUMENT, "components", "schemas")):
        assert all(re.fullmatch(r"[a-zA-Z0-9._-]+", name) for name in names)


def test_every_reference_resolves() -> None:
    unique = set(references(DOCUMENT))
    assert len(unique) > len(catalogue.EVENT_TYPES)
    for reference in unique:
        assert reference.startswith("#/")
        at(DOCUMENT, *reference.removeprefix("#/").split("/"))


def test_every_topic_is_a_channel_with_messages_and_an_operation() -> None:
    assert at(DOCUMENT, "channels").keys() == topics.TOPICS.keys() == at(DOCUMENT, "operations").keys()
    for name, topic in topics.TOPICS.items():
        channel = at(DOCUMENT, "channels", name)
        assert channel["address"] == name
        types = {entry.type for entry in catalogue.EVENT_TYPES if entry.topic == name}
        assert at(channel, "messages").keys() == types
        assert at(channel, "bindings", "kafka")["partitions"] == topic.partitions
        operation = at(DOCUMENT, "operations", name)
        assert operation["channel"] == {"$ref": f"#/channels/{name}"}
        assert operation["action"] in {"send", "receive"}


@pytest.mark.parametrize("event_type", catalogue.BY_TYPE)
def test_every_message_describes_its_headers_and_payload(event_type: str) -> None:
    message = at(DOCUMENT, "components", "messages", event_type)
    golden = files.load(files.path_of(event_type))

    headers = at(message, "headers")
    assert is_valid(headers, golden.headers)
    assert not is_valid(headers, {**golden.headers, "ce_type": "other"})
    assert not is_valid(headers, {**golden.headers, "ce_id": ""})

    # References of the payload are resolved in the whole document.
    payload = {**DOCUMENT, **at(message, "payload")}
    Draft202012Validator.check_schema(at(message, "payload"))
    data = json.loads(golden.value)
    assert is_valid(payload, data)
    assert not is_valid(payload, {})
    assert message["summary"]
