"""OpenAPI v2 documents as protobuf, in the messages of gnostic, which client-go reads.

Clients look for the schemas of kinds, and for the query parameters of their PATCH operations; other operations are left
out.
"""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.schema.openapi import GROUP_VERSION_KIND, INFO
from events.json_values import Json, as_object, canonical_json, list_at, object_at, objects_at

# Field numbers of gnostic's messages.
_DOCUMENT_SWAGGER: Final = 1
_DOCUMENT_INFO: Final = 2
_DOCUMENT_PATHS: Final = 8
_DOCUMENT_DEFINITIONS: Final = 9
_INFO_TITLE: Final = 1
_INFO_VERSION: Final = 2
_PATHS_PATH: Final = 2
_NAMED_NAME: Final = 1
_NAMED_VALUE: Final = 2
_ITEM_PATCH: Final = 8
_OPERATION_PARAMETERS: Final = 8
_OPERATION_EXTENSION: Final = 13
_EITHER_PARAMETER: Final = 1
_PARAMETER_NON_BODY: Final = 2
_NON_BODY_QUERY: Final = 3
_QUERY_IN: Final = 2
_QUERY_NAME: Final = 4
_ANY_YAML: Final = 2
_ENTRIES: Final = 1
_ITEM_SCHEMA: Final = 1
_TYPE_NAME: Final = 1
_SCHEMA_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_SCHEMA_REQUIRED: Final = 19
_SCHEMA_ADDITIONAL: Final = 21
_SCHEMA_TYPE: Final = 22
_SCHEMA_ITEMS: Final = 23
_SCHEMA_PROPERTIES: Final = 25
_SCHEMA_EXTENSION: Final = 31


def encoded(document: Json) -> bytes:
    """Return an OpenAPI v2 document as protobuf."""
    info = _text(_INFO_TITLE, INFO["title"]) + _text(_INFO_VERSION, INFO["version"])
    items = b"".join(
        _length_delimited(_PATHS_PATH, path) for path in _patched_paths(object_at(document, "paths"))
    )
    definitions = _named(object_at(document, "definitions"))
    head = _text(_DOCUMENT_SWAGGER, "2.0") + _length_delimited(_DOCUMENT_INFO, info)
    return (
        head
        + _length_delimited(_DOCUMENT_PATHS, items)
        + _length_delimited(_DOCUMENT_DEFINITIONS, definitions)
    )


def _named(schemas: Json) -> bytes:
    """Return a map of schemas."""
    return b"".join(
        _length_delimited(
            _ENTRIES, _text(_NAMED_NAME, name) + _length_delimited(_NAMED_VALUE, _schema(schema))
        )
        for name, schema in schemas.items()
    )


def _schema(written: object) -> bytes:
    """Return a schema without its limits of numbers and sizes, which no client reads."""
    schema = object_at(written)
    parts = [_text(number, str(schema[name])) for name, number in _SCHEMA_TEXTS.items() if name in schema]
    parts += [_text(_SCHEMA_REQUIRED, str(name)) for name in list_at(schema, "required")]
    if "type" in schema:
        parts.append(_length_delimited(_SCHEMA_TYPE, _text(_TYPE_NAME, str(schema["type"]))))
    for name, number in (("additionalProperties", _SCHEMA_ADDITIONAL), ("items", _SCHEMA_ITEMS)):
        if as_object(schema.get(name)) is not None:
            parts.append(_length_delimited(number, _length_delimited(_ITEM_SCHEMA, _schema(schema[name]))))
    if "properties" in schema:
        properties = _named(object_at(schema, "properties"))
        parts.append(_length_delimited(_SCHEMA_PROPERTIES, properties))
    parts += [
        _length_delimited(_SCHEMA_EXTENSION, _any(name, value))
        for name, value in schema.items()
        if name.startswith("x-")
    ]
    return b"".join(parts)


def _patched_paths(paths: Json) -> Iterator[bytes]:
    for path, item in paths.items():
        patch = object_at(item, "patch")
        if patch:
            parameters = b"".join(
                _length_delimited(_OPERATION_PARAMETERS, _parameter(str(parameter["name"])))
                for parameter in objects_at(patch, "parameters")
                if parameter.get("in") == "query"
            )
            operation = parameters + _length_delimited(
                _OPERATION_EXTENSION, _any(GROUP_VERSION_KIND, object_at(patch, GROUP_VERSION_KIND))
            )
            value = _length_delimited(_ITEM_PATCH, operation)
            yield _text(_NAMED_NAME, path) + _length_delimited(_NAMED_VALUE, value)


def _any(name: str, content: object) -> bytes:
    """Return an extension with its name; its value is YAML, and JSON is YAML too."""
    value = _text(_ANY_YAML, canonical_json(content).decode())
    return _text(_NAMED_NAME, name) + _length_delimited(_NAMED_VALUE, value)


def _parameter(name: str) -> bytes:
    query = _text(_QUERY_IN, "query") + _text(_QUERY_NAME, name)
    return _length_delimited(
        _EITHER_PARAMETER, _length_delimited(_PARAMETER_NON_BODY, _length_delimited(_NON_BODY_QUERY, query))
    )


def _text(number: int, text: str) -> bytes:
    return _length_delimited(number, text.encode())


def _length_delimited(number: int, content: bytes) -> bytes:
    """Return a length-delimited field: bytes, text or an embedded message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004  # seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
