"""OpenAPI v2: one document of all kinds, with the paths and schemas of the v3 documents, as JSON and as protobuf."""

from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.kubeapi.schema import gnostic
from engine.kubeapi.schema.openapi import INFO, REFERENCE, paths_and_schemas
from engine.kubeapi.schema.resources import Catalogue
from events.json_values import Json, as_object, canonical_json, object_at, objects_at

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of responses. Requests have ``@`` for the dot before ``v1.0``; clients cannot parse it in responses."""

_DEFINITIONS: Final = "#/definitions/"
_NOT_IN_V2: Final = ("allOf", "anyOf", "oneOf", "not", "nullable", "default")


class Document(Struct, frozen=True):
    """The OpenAPI v2 document, as JSON and as protobuf."""

    json: bytes
    protobuf: bytes


@lru_cache(maxsize=2)
def document(catalogue: Catalogue) -> Document:
    """Return the OpenAPI v2 document of all kinds in the catalogue."""
    versions = (resources for group in catalogue.groups for _version, resources in group.versions)
    paths, schemas = paths_and_schemas(resource for resources in versions for resource in resources)
    whole: Json = {
        "swagger": "2.0",
        "info": INFO,
        "paths": {path: _path_item(object_at(item)) for path, item in paths.items()},
        "definitions": {name: _schema(schema) for name, schema in schemas.items()},
    }
    return Document(canonical_json(whole), gnostic.encoded(whole))


def _path_item(item: Json) -> Json:
    return {method: _operation(object_at(operation)) for method, operation in item.items()}


def _operation(operation: Json) -> Json:
    content = object_at(operation, "responses", "200", "content", "application/json")
    schema = _schema(content.get("schema"))
    is_patch = operation.get("x-kubernetes-action") == "patch"
    body = {"name": "body", "in": "body", "required": True, "schema": {} if is_patch else schema}
    parameters = objects_at(operation, "parameters")
    query = ({"name": parameter["name"], "in": "query", "type": "string"} for parameter in parameters)
    return {
        **operation,
        "parameters": [body, *query],
        "responses": {"200": {"description": "OK", "schema": schema}},
    }


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
