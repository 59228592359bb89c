"""Catalogue entries of custom kinds, read from CustomResourceDefinitions.

Keeps only what requests need: names, versions, subresources, printer columns, and the parts of the schema
that merging and apply use. ``admission.structural`` validates values.
"""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.schema import resources
from engine.kubeapi.schema.openapi_schemas import DefinitionError, from_openapi, texts
from engine.kubeapi.schema.resources import PrinterColumn, Resource, ScalePaths, Subresource
from engine.kubeapi.schema.schemas import Field, Fields, MapOf, Named, Scalar, Schema
from events.json_values import Json, as_object, at, list_at, object_at, objects_at
from events.kube_fields import condition
from events.kube_objects import KubeObject

DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
"""The qualified resource name of CustomResourceDefinitions."""

_TEXT: Final = Field(schema=Scalar(form="str"))
_HEAD: Final[Mapping[str, Field]] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": Field(schema=Named(name="meta.ObjectMeta")),
}


def read(definition: KubeObject) -> tuple[Resource, ...]:
    """Return one resource per served version of a definition, maybe none; raises DefinitionError."""
    spec = definition.object_at("spec")
    names = object_at(spec, "names")
    group, plural, kind = (
        _text(spec, "group", "spec"),
        _text(names, "plural", "spec.names"),
        _text(names, "kind", "spec.names"),
    )
    if definition.name != f"{plural}.{group}":
        raise DefinitionError("metadata.name", f"must be spec.names.plural+.+spec.group: {plural}.{group}")
    scope = spec.get("scope")
    if scope not in ("Namespaced", "Cluster"):
        raise DefinitionError("spec.scope", "must be Namespaced or Cluster")
    result: list[Resource] = []
    for index, item in enumerate(list_at(spec, "versions")):
        version = object_at(item)
        path = f"spec.versions[{index}]"
        title = _text(version, "name", path)
        if version.get("served") is not True:
            continue
        result.append(
            Resource(
                group=group,
                version=title,
                kind=kind,
                plural=plural,
                singular=str(names.get("singular") or kind.lower()),
                schema=_root(version, kind, path),
                namespaced=scope == "Namespaced",
                short_names=texts(names.get("shortNames")),
                categories=texts(names.get("categories")),
                subresources=_subresources(version, group, title, kind),
                custom=True,
                columns=_columns(version),
                scale=_scale(version),
                structure=as_object(at(version, "schema", "openAPIV3Schema")),
                deprecation=_deprecation(spec, version, group, kind),
            )
        )
    return tuple(result)


def _deprecation(spec: Json, version: Json, group: str, kind: str) -> str:
    """The warning of a deprecated version; without a text of its own, it names the newest version to use instead."""
    if version.get("deprecated") is not True:
        return ""
    if text := version.get("deprecationWarning"):
        return str(text)
    own = str(version.get("name"))
    others = [
        str(other.get("name"))
        for other in objects_at(spec, "versions")
        if other.get("served") is True and other.get("deprecated") is not True
    ]
    newer = [name for name in others if resources.version_priority(name) < resources.version_priority(own)]
    newest = min(newer, key=resources.version_priority, default="")
    instead = f"; use {group}/{newest} {kind}" if newest else ""
    return f"{group}/{own} {kind} is deprecated{instead}"


def _root(version: Json, kind: str, path: str) -> Schema:
    schema = at(version, "schema", "openAPIV3Schema")
    if as_object(schema) is None:
        raise DefinitionError(f"{path}.schema.openAPIV3Schema", "schemas are required")
    root = from_openapi(schema, kind)
    if isinstance(root, MapOf):
        return Fields(name=kind, fields=_HEAD, open=True)
    if not isinstance(root, Fields):
        raise DefinitionError(f"{path}.schema.openAPIV3Schema.type", "must be object at the root")
    return Fields(name=kind, fields={**root.fields, **_HEAD}, open=root.open)


def _subresources(version: Json, group: str, title: str, kind: str) -> tuple[Subresource, ...]:
    parts = object_at(version, "subresources")
    result: list[Subresource] = []
    if "status" in parts:
        result.append(resources.status_of(group, title, kind))
    if "scale" in parts:
        result.append(resources.scale())
    return tuple(result)


def _scale(version: Json) -> ScalePaths | None:
    paths = as_object(at(version, "subresources", "scale"))
    if paths is None:
        return None
    return ScalePaths(
        spec_replicas=str(paths.get("specReplicasPath", "")),
        status_replicas=str(paths.get("statusReplicasPath", "")),
        label_selector=str(paths.get("labelSelectorPath", "")),
    )


def _columns(version: Json) -> tuple[PrinterColumn, ...]:
    result: list[PrinterColumn] = []
    for item in list_at(version, "additionalPrinterColumns"):
        column = object_at(item)
        priority = column.get("priority", 0)
        result.append(
            PrinterColumn(
                name=str(column.get("name", "")),
                path=str(column.get("jsonPath", "")),
                type=str(column.get("type", "string")),
                format=str(column.get("format", "")),
                description=str(column.get("description", "")),
                priority=priority if isinstance(priority, int) else 0,
            )
        )
    return tuple(result)


def _text(fields: Json, name: str, path: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise DefinitionError(f"{path}.{name}", "Required value")
    return value


def established(definition: KubeObject) -> KubeObject:
    """Return a definition with the status Established, since its kinds are served as soon as it is stored."""
    spec = definition.object_at("spec")
    since = definition.text_at("metadata", "creationTimestamp") or None
    conditions = [
        condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", since),
        condition(
            "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", since
        ),
    ]
    versions = objects_at(spec, "versions")
    # Definitions from other producers are not validated, so versions may have no name.
    stored = [version["name"] for version in versions if version.get("storage") is True and "name" in version]
    status = {"acceptedNames": spec.get("names", {}), "conditions": conditions, "storedVersions": stored}
    return definition.with_fields({"status": status})
