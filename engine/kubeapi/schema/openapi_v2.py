"""OpenAPI v2: one document of all kinds, with the paths and schemas of the v3 documents.

The protobuf form (gnostic's messages) is for kubectl before 1.29. It looks for the PATCH operation of a kind and the
names of its query parameters, so that form has no schemas.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.kubeapi.schema.openapi import GROUP_VERSION_KIND, INFO, REFERENCE, paths_and_schemas
from engine.kubeapi.schema.resources import Catalogue
from events.json_values import Json, as_object, canonical_json, object_at, objects_at

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of responses. Requests have ``@`` for the dot before ``v1.0``; clients cannot parse it in responses."""

_DEFINITIONS: Final = "#/definitions/"
_NOT_IN_V2: Final = ("allOf", "anyOf", "oneOf", "not", "nullable", "default")

# Field numbers of gnostic's messages.
_DOCUMENT_SWAGGER: Final = 1
_DOCUMENT_INFO: Final = 2
_DOCUMENT_PATHS: Final = 8
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


class Document(Struct, frozen=True):
    """The document in both forms."""

    json: bytes
    protobuf: bytes


@lru_cache(maxsize=2)
def document(catalogue: Catalogue) -> Document:
    """Return the document of all kinds."""
    versions = (resources for group in catalogue.groups for _version, resources in group.versions)
    paths, schemas = paths_and_schemas(resource for resources in versions for resource in resources)
    whole: Json = {
        "swagger": "2.0",
        "info": INFO,
        "paths": {path: _path_item(object_at(item)) for path, item in paths.items()},
        "definitions": {name: _schema(schema) for name, schema in schemas.items()},
    }
    return Document(canonical_json(whole), _protobuf(paths))


def _path_item(item: Json) -> Json:
    return {method: _operation(object_at(operation)) for method, operation in item.items()}


def _operation(operation: Json) -> Json:
    content = object_at(operation, "responses", "200", "content", "application/json")
    schema = _schema(content.get("schema"))
    is_patch = operation.get("x-kubernetes-action") == "patch"
    body = {"name": "body", "in": "body", "required": True, "schema": {} if is_patch else schema}
    query = ({"name": parameter["name"], "in": "query", "type": "string"} for parameter in _query(operation))
    return {
        **operation,
        "parameters": [body, *query],
        "responses": {"200": {"description": "OK", "schema": schema}},
    }


def _query(operation: Json) -> list[Json]:
    return objects_at(operation, "parameters")


def _schema(written: object) -> Json:
    """Convert a schema of v3. As in Kubernetes, what v2 cannot express becomes any value."""
    v3 = object_at(written)
    schema = {name: value for name, value in v3.items() if name not in _NOT_IN_V2}
    for parent in (v3, *objects_at(v3, "allOf")):
        if "$ref" in parent:
            schema["$ref"] = str(parent["$ref"]).replace(REFERENCE, _DEFINITIONS)
    if v3.get("nullable") is True or v3.get("x-kubernetes-preserve-unknown-fields") is True:
        for name in ("type", "items", "properties"):
            schema.pop(name, None)
    if "items" in schema:
        schema["items"] = _schema(schema["items"])
    if as_object(schema.get("additionalProperties")) is not None:
        schema["additionalProperties"] = _schema(schema["additionalProperties"])
    if "properties" in schema:
        properties = object_at(schema, "properties")
        schema["properties"] = {name: _schema(value) for name, value in properties.items()}
    return schema


def _protobuf(paths: Json) -> bytes:
    info = _text(_INFO_TITLE, INFO["title"]) + _text(_INFO_VERSION, INFO["version"])
    items = b"".join(_length_delimited(_PATHS_PATH, path) for path in _patched_paths(paths))
    head = _text(_DOCUMENT_SWAGGER, "2.0") + _length_delimited(_DOCUMENT_INFO, info)
    return head + _length_delimited(_DOCUMENT_PATHS, items)


def _patched_paths(paths: Json) -> Iterator[bytes]:
    for path, item in paths.items():
        patch = object_at(item, "patch")
        if patch:
            parameters = b"".join(
                _length_delimited(_OPERATION_PARAMETERS, _parameter(str(parameter["name"])))
                for parameter in _query(patch)
            )
            operation = parameters + _length_delimited(
                _OPERATION_EXTENSION, _kind(object_at(patch, GROUP_VERSION_KIND))
            )
            value = _length_delimited(_ITEM_PATCH, operation)
            yield _text(_NAMED_NAME, path) + _length_delimited(_NAMED_VALUE, value)


def _kind(names: Json) -> bytes:
    # JSON is YAML too.
    value = _text(_ANY_YAML, canonical_json(names).decode())
    return _text(_NAMED_NAME, GROUP_VERSION_KIND) + _length_delimited(_NAMED_VALUE, value)


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
