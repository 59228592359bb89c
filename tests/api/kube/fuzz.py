"""Requests to the Kubernetes API that its own OpenAPI documents allow, and some that they do not.

Objects are drawn from the served schemas; now and then a value has another type, a field is unknown, or a
part is missing. Paths, verbs, body formats and queries are drawn from what clients can send.
"""

from typing import Final

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from engine.kubeapi.schema import openapi
from engine.kubeapi.schema.resources import Catalogue, Resource, control_plane
from events.json_values import Json, as_list, as_object, list_at, object_at

NAMES: Final = ("one", "two", "Not A Name", "x" * 300, "")
NAMESPACES: Final = ("default", "nowhere", "kube-system")
PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
QUERIES: Final[tuple[dict[str, str], ...]] = (
    {},
    {"fieldManager": "tests", "fieldValidation": "Strict"},
    {"fieldManager": "tests", "fieldValidation": "Ignore"},
    {"fieldManager": "tests", "force": "true"},
    {"dryRun": "All", "fieldManager": "tests"},
    {"dryRun": "Some"},
    {"fieldValidation": "?"},
    {"fieldManager": "x" * 200},
)
_DEPTH_MAX: Final = 7
_ODD: Final[tuple[object, ...]] = (None, True, -1, 2**63, 1.5, "", "?", "\u0000", [], {}, [None], {"": None})
_TEXTS: Final = (
    "one",
    "default",
    "member1",
    "apps/v1",
    "Deployment",
    "v1",
    "10m",
    "1Gi",
    "NoExecute",
    "In",
    "*",
)
_REFERENCE: Final = "#/components/schemas/"


class FuzzRequest(Struct, frozen=True, kw_only=True):
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    type: str
    body: bytes

    @property
    def is_dry(self) -> bool:
        """Whether the request is a dry run."""
        return "dryRun" in self.query


def resources() -> list[Resource]:
    """Return the kinds that can be written, without reviews."""
    return [resource for resource in control_plane().resources if {"create", "update"} <= set(resource.verbs)]


def schemas(catalogue: Catalogue) -> dict[str, Json]:
    """Return all components of all documents by name."""
    schema_by_name: dict[str, Json] = {}
    for group in catalogue.groups:
        for version, _resources in group.versions:
            document = openapi.document(catalogue, group.name, version) or {}
            components = object_at(document, "components")
            for name, schema in object_at(components, "schemas").items():
                # A document that only refers to a component does not name its kind.
                schema_by_name[name] = {**object_at(schema), **schema_by_name.get(name, {})}
    return schema_by_name


SCHEMAS: Final = schemas(control_plane())


@st.composite
def fuzz_requests(draw: st.DrawFn, resource: Resource) -> FuzzRequest:
    """A request about an object of a kind."""
    method = draw(st.sampled_from(("POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "GET")))
    name = draw(st.sampled_from(NAMES))
    namespace = draw(st.sampled_from(NAMESPACES)) if resource.namespaced else ""
    root = f"/apis/{resource.group}" if resource.group else "/api"
    path = f"{root}/{resource.version}"
    path += f"/namespaces/{namespace}/{resource.plural}" if namespace else f"/{resource.plural}"
    if method != "POST":
        path += f"/{name}" + draw(st.sampled_from(("", "", "", "/status", "/scale", "/nothing")))
    value = draw(_objects(resource, name, namespace))
    kind = draw(st.sampled_from(PATCHES if method == "PATCH" else ("application/json", "application/yaml")))
    if kind == PATCHES[0]:
        operation = draw(st.sampled_from(("add", "remove", "replace", "test", "move", "?")))
        pointer = draw(
            st.sampled_from(("/spec", "/metadata/labels/a~1b", "/spec/replicas", "/x/-", "", "/metadata"))
        )
        body: object = [{"op": operation, "path": pointer, "value": value.get("spec"), "from": "/metadata"}]
    else:
        body = value
    return FuzzRequest(
        method=method,
        path=path,
        query=dict(draw(st.sampled_from(QUERIES))),
        type=kind,
        body=b"" if method in ("GET", "DELETE") else msgspec.json.encode(body),
    )


@st.composite
def _objects(draw: st.DrawFn, resource: Resource, name: str, namespace: str) -> Json:
    component = next(
        schema
        for schema in SCHEMAS.values()
        if {"group": resource.group, "version": resource.version, "kind": resource.kind}
        in list_at(schema, "x-kubernetes-group-version-kind")
    )
    manifest = object_at(draw(_values(component, 0)))
    manifest |= {"apiVersion": resource.api_version, "kind": resource.kind}
    if draw(st.integers(0, 9)):
        metadata = {**object_at(manifest, "metadata"), "name": name}
        # Drawn values of server-set fields are invalid more often than not.
        for field in ("namespace", "resourceVersion", "uid", "managedFields", "deletionTimestamp"):
            metadata.pop(field, None)
        manifest["metadata"] = metadata | ({"namespace": namespace} if namespace else {})
    return manifest


@st.composite
def _values(draw: st.DrawFn, schema: Json, depth: int) -> object:
    """A value that a schema allows, or now and then another one."""
    if not draw(st.integers(0, 24)):
        return draw(st.sampled_from(_ODD))
    whole = as_list(schema.get("allOf"))
    if whole:
        return draw(_values(object_at(whole[0]), depth))
    if "$ref" in schema:
        schema = SCHEMAS.get(str(schema["$ref"]).removeprefix(_REFERENCE), {})
    match schema.get("type"):
        case "object":
            return draw(_fields(schema, depth))
        case "array":
            item = object_at(schema, "items")
            count = 0 if depth > _DEPTH_MAX else draw(st.integers(0, 2))
            return [draw(_values(item, depth + 1)) for _ in range(count)]
        case "integer":
            return draw(st.sampled_from((0, 1, 3, 80, -1, 2**31)))
        case "number":
            return draw(st.sampled_from((0, 1.5, -2)))
        case "boolean":
            return draw(st.booleans())
        case _:
            return draw(st.sampled_from(_TEXTS))


@st.composite
def _fields(draw: st.DrawFn, schema: Json, depth: int) -> Json:
    properties = object_at(schema, "properties")
    required = {str(name) for name in list_at(schema, "required")}
    fields: Json = {}
    for name, below in properties.items():
        is_included = name in required or (depth <= _DEPTH_MAX and not draw(st.integers(0, 2)))
        if is_included and (depth <= _DEPTH_MAX or name in required) and depth < 2 * _DEPTH_MAX:
            fields[name] = draw(_values(object_at(below), depth + 1))
    more = as_object(schema.get("additionalProperties"))
    if more is not None and depth <= _DEPTH_MAX:
        fields[draw(st.sampled_from(_TEXTS))] = draw(_values(more, depth + 1))
    if not draw(st.integers(0, 29)):
        fields["unknown"] = 1
    return fields
