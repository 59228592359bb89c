"""OpenAPI v2: the JSON document, and its protobuf form, which older kubectl versions read."""

import json
import re

from engine.kubeapi.schema import custom_kinds, openapi_v2
from engine.kubeapi.schema.resources import control_plane
from engine.kubeapi.wire import protobuf
from events.json_values import Json, as_object, decoded, object_at, objects_at
from events.kube_objects import KubeObject


def below(message: bytes, *numbers: int) -> list[bytes]:
    """Return the values at the end of a path of field numbers."""
    values = [message]
    for number in numbers:
        values = [
            value for parent in values for at, value in protobuf.values(parent) if at == number and value != 0
        ]
        values = [value for value in values if isinstance(value, bytes)]
    return values


def test_patch_of_each_kind_declares_its_kind_and_field_validation() -> None:
    document = openapi_v2.document(control_plane()).protobuf
    kinds: dict[tuple[str, str], set[bytes]] = {}
    for patch in below(document, 8, 2, 2, 8):
        (yaml,) = below(patch, 13, 2, 2)
        kind = json.loads(yaml)
        kinds[kind["group"], kind["kind"]] = set(below(patch, 8, 1, 2, 3, 4))
    assert {b"fieldValidation", b"dryRun"} <= kinds["apps", "Deployment"]
    assert {b"fieldValidation", b"dryRun"} <= kinds["policy.karmada.io", "PropagationPolicy"]
    assert b"/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in below(document, 8, 2, 1)
    assert below(document, 1) == [b"2.0"]


def _schema(message: bytes) -> Json:
    """Read a schema from protobuf, with the parts that the document has in both forms."""
    texts = {
        name: below(message, number) for name, number in (("$ref", 1), ("format", 2), ("description", 4))
    }
    schema: Json = {name: values[0].decode() for name, values in texts.items() if values}
    if required := below(message, 19):
        schema["required"] = [name.decode() for name in required]
    if types := below(message, 22, 1):
        schema["type"] = types[0].decode()
    for name, number in (("additionalProperties", 21), ("items", 23)):
        if parts := below(message, number, 1):
            schema[name] = _schema(parts[0])
    if below(message, 25):
        schema["properties"] = _schemas(message, 25)
    for extension in below(message, 31):
        schema[below(extension, 1)[0].decode()] = json.loads(below(extension, 2, 2)[0])
    return schema


def _schemas(message: bytes, number: int) -> Json:
    """Read a map of schemas from a field of a message."""
    return {
        below(entry, 1)[0].decode(): _schema(b"".join(below(entry, 2))) for entry in below(message, number, 1)
    }


def _kept(written: object) -> object:
    """Return a schema of the JSON document without the limits that protobuf does not have."""
    schema = as_object(written)
    if schema is None:
        return written
    left_out = ("minimum", "maximum", "pattern", "enum", "minLength", "maxLength", "minItems", "maxItems")
    kept: Json = {name: _kept(value) for name, value in schema.items() if name not in left_out}
    if "properties" in schema:
        properties = object_at(schema, "properties")
        kept["properties"] = {name: _kept(value) for name, value in properties.items()}
    return kept


def test_both_forms_have_the_same_schemas() -> None:
    document = openapi_v2.document(control_plane())
    definitions = object_at(decoded(document.json), "definitions")
    encoded = _schemas(document.protobuf, 9)
    assert encoded.keys() == definitions.keys()
    assert not [name for name, schema in definitions.items() if encoded[name] != _kept(schema)]


GADGET: Json = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "gadgets", "kind": "Gadget"},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "emptied": {"type": "string", "nullable": True, "default": "a"},
                        "entries": {"type": "object", "additionalProperties": {"type": "string"}},
                        "open": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                            "properties": {"one": {"type": "string"}},
                        },
                        "oneOf": {"type": "integer", "not": {"enum": [4]}},
                    },
                },
            },
        }
    ],
}


def _whole() -> Json:
    custom = custom_kinds.read(KubeObject({"metadata": {"name": "gadgets.example.com"}, "spec": GADGET}))
    document = openapi_v2.document(control_plane().with_custom(custom))
    return decoded(document.json)


def test_every_reference_of_the_json_document_is_defined() -> None:
    document = _whole()
    names = set(object_at(document, "definitions"))
    used = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)))
    assert used
    assert {reference.removeprefix("#/definitions/") for reference in used} <= names


def test_each_kind_has_its_definition() -> None:
    definitions = object_at(_whole(), "definitions")
    kinds = {
        (str(kind["group"]), str(kind["version"]), str(kind["kind"]))
        for definition in definitions.values()
        for kind in objects_at(definition, "x-kubernetes-group-version-kind")
    }
    catalogue = control_plane()
    versions = [resources for group in catalogue.groups for _version, resources in group.versions]
    served = {(item.group, item.version, item.kind) for resources in versions for item in resources}
    assert kinds == served | {("example.com", "v1", "Gadget")}


def test_custom_kinds_have_what_version_2_can_express() -> None:
    gadget = object_at(_whole(), "definitions", "com.example.v1.Gadget", "properties")
    own = {name: gadget[name] for name in ("emptied", "entries", "open", "oneOf")}
    # As a real API server answers for this definition.
    assert own == {
        "emptied": {},
        "entries": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"x-kubernetes-preserve-unknown-fields": True},
        "oneOf": {"type": "integer"},
    }


def test_patch_in_json_has_a_body_and_query_parameters() -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = object_at(_whole(), "paths", path, "patch")
    parameters = {(str(item["in"]), str(item["name"])) for item in objects_at(patch, "parameters")}
    assert {("body", "body"), ("query", "dryRun"), ("query", "fieldValidation")} <= parameters
    schema = object_at(patch, "responses", "200", "schema")
    definition = object_at(_whole(), "definitions", str(schema["$ref"]).removeprefix("#/definitions/"))
    spec = object_at(definition, "properties", "spec")
    assert str(spec["$ref"]).startswith("#/definitions/")
