"""Equal events are encoded to equal bytes, even if their values are different objects."""

import enum
from collections.abc import Iterator
from typing import cast

import msgspec
import pytest
from hypothesis import given
from msgspec import inspect

from events import catalogue, codec, schemas, shapes
from tests.events import generating

SCHEMAS = schemas.json_schemas()


@pytest.mark.parametrize("entry", catalogue.EVENT_TYPES, ids=lambda entry: entry.type)
def test_equal_events_give_equal_bytes_with_explicit_or_omitted_defaults(
    entry: shapes.EventType,
) -> None:
    @given(generating.values(SCHEMAS[entry.type]))
    def holds(data: object) -> None:
        event = msgspec.json.decode(msgspec.json.encode(data), type=entry.struct)
        spelled_out = msgspec.json.decode(msgspec.json.encode(with_defaults(event)), type=entry.struct)
        assert codec.encode_data(spelled_out) == codec.encode_data(event)
        again = msgspec.json.decode(codec.encode_data(event), type=entry.struct)
        assert codec.encode_data(again) == codec.encode_data(event)

    holds()


def with_defaults(value: object) -> object:
    """Return the JSON value of a struct with every field written out, defaults included."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        return {field.encode_name: with_defaults(getattr(value, field.name)) for field in fields}
    if isinstance(value, tuple):
        return [with_defaults(item) for item in cast("tuple[object, ...]", value)]
    return value


def test_event_field_defaults_are_singletons() -> None:
    unsafe = [
        f"{struct.cls.__name__}.{field.name} = {field.default!r}; use an enum of events.enums"
        for struct in _structs()
        for field in struct.fields
        if field.default is not msgspec.NODEFAULT and not _is_one_object(field.default)
    ]
    assert not unsafe


def _is_one_object(default: object) -> bool:
    """Whether the value has a single object in CPython or an enum; msgspec compares empty containers by value."""
    if isinstance(default, int):
        return -5 <= default <= 256  # CPython's cached integers
    return default is None or default in {"", ()} or isinstance(default, enum.Enum)


def _structs() -> Iterator[inspect.StructType]:
    """Yield the struct of each event type and all nested structs."""
    seen: set[type] = set()
    waiting: list[inspect.Type] = [inspect.type_info(entry.struct) for entry in catalogue.EVENT_TYPES]
    while waiting:
        kind = waiting.pop()
        match kind:
            case inspect.StructType() if kind.cls not in seen:
                seen.add(kind.cls)
                yield kind
                waiting.extend(field.type for field in kind.fields)
            case inspect.UnionType(types=inner):
                waiting.extend(inner)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                waiting.append(item)
            case inspect.DictType(value_type=value):
                waiting.append(value)
            case _:
                pass
