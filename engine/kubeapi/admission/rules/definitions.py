"""Validation of CustomResourceDefinitions, from the published Kubernetes API."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.openapi_schemas import SCHEMA_DEPTH_MAX
from events.json_values import Json, as_object, at, list_at, object_at, objects_at
from events.kube_objects import KubeObject

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_PATH_WORDS: Final = "must be a simple json path starting with ."
_ROOT: Final = "spec.validation.openAPIV3Schema"


def definition(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a CustomResourceDefinition."""
    if live is not None:
        for path in (("scope",), ("names", "kind")):
            if value.at("spec", *path) != live.at("spec", *path):
                yield causes.invalid(".".join(("spec", *path)), value.at("spec", *path), words.IMMUTABLE)
    wrong = list(_faults(value))
    yield from wrong
    if wrong:
        return
    try:
        custom_kinds.read(value)
    except custom_kinds.DefinitionError as error:
        yield Cause(field=error.field, reason="FieldValueInvalid", message=error.reason)


def _faults(definition: KubeObject) -> Iterator[Cause]:
    spec = definition.object_at("spec")
    names = object_at(spec, "names")
    name = definition.name
    group, plural, kind = (
        str(name or "") for name in (spec.get("group"), names.get("plural"), names.get("kind"))
    )
    if name != f"{plural}.{group}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    yield from words.required("spec.group", group, _group_faults)
    yield from words.one_of(spec, "scope", "spec", ("Cluster", "Namespaced"))
    versions = objects_at(spec, "versions")
    for index, version in enumerate(versions):
        # The API server reports errors of a single version at the top level of the spec, of several by
        # index.
        yield from _version(version, f"spec.versions[{index}]", "" if len(versions) == 1 else f"[{index}]")
    if sum(version.get("storage") is True for version in versions) != 1:
        shown = [_shown(version) for version in versions]
        detail = "must have exactly one version marked as storage version"
        yield causes.whole("spec.versions", shown, detail)
    titles = [version.get("name") for version in versions]
    if len(set(map(str, titles))) != len(titles):
        shown = [_shown(version) for version in versions]
        yield causes.whole("spec.versions", shown, "must contain unique version names")
    yield from _of_names(names, plural, kind)
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead"
        )
        yield causes.invalid("spec.preserveUnknownFields", value=True, detail=detail)
    conversion = object_at(spec, "conversion")
    yield from words.one_of(conversion, "strategy", "spec.conversion", ("None", "Webhook"))


def _version(version: Json, path: str, version_path: str) -> Iterator[Cause]:
    title = str(version.get("name") or "")
    yield from words.each_invalid(f"{path}.name", title, words.old_label_faults(title))
    whole = path if version_path else "spec"
    schema = as_object(at(version, "schema", "openAPIV3Schema"))
    if schema is None:
        yield causes.required(f"{path}.schema.openAPIV3Schema")
    else:
        yield from _root(schema, f"{path}.schema.openAPIV3Schema" if version_path else _ROOT)
    scale = as_object(at(version, "subresources", "scale"))
    if scale is not None:
        yield from _scale(scale, f"{whole}.subresources.scale")
    for number, column in enumerate(list_at(version, "additionalPrinterColumns")):
        yield from _column(object_at(column), f"{whole}.additionalPrinterColumns[{number}]")


def _scale(scale: Json, path: str) -> Iterator[Cause]:
    for name, part in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        text = str(scale.get(name) or "")
        if not text:
            yield causes.required(f"{path}.{name}")
        elif not text.startswith("."):
            yield causes.invalid(f"{path}.{name}", text, _PATH_WORDS)
        elif not text.startswith(f"{part}."):
            yield causes.invalid(f"{path}.{name}", text, f"should be a json path under {part}")
    text = str(scale.get("labelSelectorPath") or "")
    if text and not text.startswith("."):
        yield causes.invalid(f"{path}.labelSelectorPath", text, _PATH_WORDS)
    elif text and not text.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        yield causes.invalid(f"{path}.labelSelectorPath", text, detail)


def _column(column: Json, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield causes.required(f"{path}.name")
    if not column.get("type"):
        yield causes.required(f"{path}.type")
    elif column["type"] not in _COLUMN_TYPES:
        yield causes.invalid(f"{path}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
    text = str(column.get("jsonPath") or "")
    if not text:
        yield causes.required(f"{path}.JSONPath")
    elif not text.startswith("."):
        yield causes.invalid(f"{path}.JSONPath", text, _PATH_WORDS)


def _root(schema: Json, path: str) -> Iterator[Cause]:
    type_name = schema.get("type")
    if not type_name:
        yield causes.required(f"{path}.type", "must not be empty at the root")
    elif type_name != "object":
        yield causes.invalid(f"{path}.type", type_name, "must be object at the root")
    metadata = object_at(schema, "properties", "metadata")
    if object_at(metadata, "properties").keys() - {"name", "generateName"}:
        detail = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        yield causes.forbidden(f"{path}.properties[metadata]", detail)
    yield from _below(schema, path, SCHEMA_DEPTH_MAX)


def _below(schema: Json, path: str, depth: int) -> Iterator[Cause]:
    if depth <= 0:
        return
    for name, field_schema in object_at(schema, "properties").items():
        yield from _schema(
            object_at(field_schema), f"{path}.properties[{name}]", "specified object fields", depth
        )
    items = as_object(schema.get("items"))
    if items is not None:
        yield from _schema(items, f"{path}.items", "specified array items", depth)
    others = as_object(schema.get("additionalProperties"))
    if others is not None:
        yield from _schema(others, f"{path}.additionalProperties", "specified object fields", depth)


def _schema(schema: Json, path: str, subject: str, depth: int) -> Iterator[Cause]:
    type_name = schema.get("type")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if not type_name and not is_open and schema.get("x-kubernetes-int-or-string") is not True:
        yield causes.required(f"{path}.type", f"must not be empty for {subject}")
    elif type_name and type_name not in _TYPES:
        yield causes.unsupported(f"{path}.type", type_name, _TYPES)
    elif type_name == "array" and as_object(schema.get("items")) is None:
        yield causes.required(f"{path}.items", "must be specified")
    yield from _below(schema, path, depth - 1)


def _of_names(names: Json, plural: str, kind: str) -> Iterator[Cause]:
    singular = str(names.get("singular") or kind.lower())
    for name, text in (("plural", plural), ("singular", singular)):
        yield from words.required(f"spec.names.{name}", text, words.old_label_faults)
    for name, text in (("kind", kind), ("listKind", str(names.get("listKind") or (kind and f"{kind}List")))):
        yield from words.required(f"spec.names.{name}", text, _mixed_case_faults)


def _group_faults(text: str) -> list[str]:
    without_dot = [] if "." in text else ["should be a domain with at least one dot"]
    return words.subdomain_faults(text) or without_dot


def _mixed_case_faults(text: str) -> list[str]:
    faults = words.old_label_faults(text.lower())
    return [f"may have mixed case, but should otherwise match: {fault}" for fault in faults]


def _shown(version: Json) -> Json:
    """Return a version with the Go field names that the API server prints in errors."""
    return {
        "Name": version.get("name"),
        "Served": version.get("served") is True,
        "Storage": version.get("storage") is True,
        "Deprecated": False,
        "DeprecationWarning": None,
        "Schema": None,
        "Subresources": None,
        "AdditionalPrinterColumns": None,
        "SelectableFields": None,
    }
