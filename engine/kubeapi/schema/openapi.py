"""OpenAPI v3 documents, one per group and version, built from the catalogue.

kubectl reads them for ``explain`` and to learn that the server validates fields. A custom kind has the schema
of its definition. Only the Karmada groups and Reballast's own have descriptions of their types and fields.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from engine.kubeapi.schema.resources import Catalogue, Resource
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Named, Scalar, Schema
from engine.kubeapi.schema.types.parsing import named
from events.json_values import Json, as_text, at, canonical_json, list_at, object_at
from events.validation import kind_schemas, kinds_table

_SCALARS: Final[Mapping[str, Json]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": {"type": "string"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "time": {"type": "string", "format": "date-time"},
    "micro": {"type": "string", "format": "date-time"},
}
_PUBLISHED_PACKAGES: Final = {
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    "autoscalingv2": "io.k8s.api.autoscaling.v2",
    "meta": "io.k8s.apimachinery.pkg.apis.meta.v1",
    "metrics": "io.k8s.metrics.pkg.apis.metrics.v1beta1",
}
"""Names of Kubernetes' packages in its OpenAPI documents; those of all others are ``io.k8s.api.PACKAGE.v1``."""
INFO: Final = {"title": "Kubernetes", "version": kinds_table.RELEASE}
GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"
REFERENCE: Final = "#/components/schemas/"
_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


def index(catalogue: Catalogue) -> Json:
    """Return the index at ``/openapi/v3``; each URL contains a digest of its document, so clients can cache it."""
    paths: Json = {}
    for group in catalogue.groups:
        for version, resources in group.versions:
            root = _root(group.name, version)
            content = canonical_json(_document(resources))
            paths[root] = {"serverRelativeURL": url(f"/openapi/v3/{root}", content)}
    return {"paths": paths}


def document(catalogue: Catalogue, name: str, version: str) -> Json | None:
    """Return the document of a group and version, or None if they are not served."""
    resources = catalogue.in_version(name, version)
    return _document(resources) if resources else None


def url(path: str, content: bytes) -> str:
    """Return the URL of a document, which contains the digest of its bytes."""
    return f"{path}?hash={digest(content)}"


def digest(content: bytes) -> str:
    """Return the digest of a document's bytes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest().upper()


def _root(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _document(resources: Iterable[Resource]) -> Json:
    paths, schemas = paths_and_schemas(resources)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {"schemas": schemas},
    }


def paths_and_schemas(resources: Iterable[Resource]) -> tuple[Json, Json]:
    """Return the paths of kinds, and the schemas of the kinds with all that they reference."""
    schemas: Json = {}
    paths: Json = {}
    for resource in resources:
        kind: Json = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        component = _component(resource, schemas)
        schema = object_at(schemas[component])
        schemas[component] = {**schema, GROUP_VERSION_KIND: [*list_at(schema, GROUP_VERSION_KIND), kind]}
        paths.update(_paths(resource, component, kind))
    return paths, schemas


def _collection_path(resource: Resource) -> str:
    """Return the path of the objects of a kind, with a placeholder for the namespace."""
    space = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{_root(resource.group, resource.version)}{space}/{resource.plural}"


def _paths(resource: Resource, component: str, kind: Json) -> Json:
    """Return the OpenAPI paths with the write operations of a kind; clients do not look up other operations."""
    base = _collection_path(resource)
    query = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _QUERY]

    def operation(action: str) -> Json:
        content = {"application/json": {"schema": {"$ref": f"{REFERENCE}{component}"}}}
        return {
            "x-kubernetes-action": action,
            GROUP_VERSION_KIND: kind,
            "parameters": query,
            "responses": {"200": {"description": "OK", "content": content}},
        }

    result: Json = {}
    if "create" in resource.verbs:
        result[base] = {"post": operation("post")}
    if "patch" in resource.verbs:
        result[f"{base}/{{name}}"] = {"put": operation("put"), "patch": operation("patch")}
    return result


def _component(resource: Resource, schemas: Json) -> str:
    """Add the schema of a kind, with all that it references, to ``schemas`` and return its component name."""
    if isinstance(resource.schema, Named):
        return _named(resource.schema.name, schemas)
    name = ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))
    own = _written(resource.schema, schemas)
    if resource.structure is not None:
        # The schema as it is written in the definition, but with the usual types of apiVersion, kind and metadata.
        known, described = object_at(own, "properties"), object_at(resource.structure, "properties")
        head = {field: known[field] for field in ("apiVersion", "kind", "metadata") if field in known}
        own = {**resource.structure, "properties": {**described, **head}}
    schemas[name] = own
    return name


def _named(name: str, schemas: Json) -> str:
    component = _published(name)
    if component not in schemas:
        schemas[component] = {}  # set before descending: types may contain themselves
        schemas[component] = _fields(named(name), schemas)
    return component


def _published(name: str) -> str:
    """Return the component name of a type. Clients look up Kubernetes' types by the names in its own documents."""
    package, _, kind = name.rpartition(".")
    is_of_kubernetes = "." not in package
    return (
        f"{_PUBLISHED_PACKAGES.get(package, f'io.k8s.api.{package}.v1')}.{kind}" if is_of_kubernetes else name
    )


def _written(schema: Schema, schemas: Json) -> Json:
    match schema:
        case Scalar(form=form, bits=bits):
            return {**_SCALARS[form], **({"format": f"int{bits}"} if bits else {})}
        case Named(name=name, granular=granular):
            result: Json = {"allOf": [{"$ref": REFERENCE + _named(name, schemas)}]}
            return {**result, "x-kubernetes-map-type": "granular"} if granular else result
        case ListOf():
            return _list(schema, schemas)
        case MapOf():
            result = {"type": "object", "additionalProperties": _written(schema.value, schemas)}
            return {**result, "x-kubernetes-map-type": "atomic"} if schema.atomic else result
        case Fields():
            return _fields(schema, schemas)
        case _:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _list(schema: ListOf, schemas: Json) -> Json:
    result: Json = {
        "type": "array",
        "items": _written(schema.item, schemas),
        "x-kubernetes-list-type": schema.relation,
    }
    if schema.keys:
        result["x-kubernetes-list-map-keys"] = list(schema.keys)
    if schema.patch_key:
        result["x-kubernetes-patch-strategy"] = "merge"
        if schema.patch_key != "*":
            result["x-kubernetes-patch-merge-key"] = schema.patch_key
    return result


def _fields(fields: Fields, schemas: Json) -> Json:
    described = kind_schemas.types().get(fields.name, {})
    properties: Json = {}
    for name, field in fields.fields.items():
        written = _written(field.schema, schemas)
        if field.default is not None:
            written = {**written, "default": field.default}
        properties[name] = {**written, **_description(at(described, "properties", name))}
    result: Json = {"type": "object", "properties": properties, **_description(described)}
    required = [name for name, field in fields.fields.items() if field.required]
    if required:
        result["required"] = required
    if fields.atomic:
        result["x-kubernetes-map-type"] = "atomic"
    if fields.open:
        result["x-kubernetes-preserve-unknown-fields"] = True
    return result


def _description(written: object) -> dict[str, str]:
    text = as_text(at(written, "description"))
    return {"description": text} if text else {}
