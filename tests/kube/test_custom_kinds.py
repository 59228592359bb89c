"""CustomResourceDefinitions: kinds in the catalogue, and schemas for merges."""

import tracemalloc

import pytest

from engine.kubeapi.admission import schema_validation
from engine.kubeapi.admission.rules import definitions
from engine.kubeapi.errors import messages
from engine.kubeapi.patching import managed_fields, server_side_apply
from engine.kubeapi.schema import custom_kinds, discovery, openapi, openapi_schemas, resources
from engine.kubeapi.schema.schemas import ListOf, Scalar
from events.json_values import Json, list_at, object_at, objects_at
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

_UNDER_EITHER = "should be a json path under either .spec or .status"
SCHEMA: Json = {
    "type": "object",
    "description": "Somewhere to live.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "description": "How many rooms it has."},
                "port": {"x-kubernetes-int-or-string": True},
                "doors": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "colour": {"type": "string"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    },
}
VERSION: Json = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": SCHEMA},
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"},
    },
    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
}


def _definition(**spec: object) -> KubeObject:
    names: Json = {"plural": "houses", "kind": "House", "shortNames": ["ho"]}
    defaults: Json = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [VERSION]}
    return KubeObject({"metadata": {"name": "houses.example.com"}, "spec": {**defaults, **spec}})


def _house_manifest(**spec: object) -> Json:
    return manifest("example.com/v1", "House", "one", spec=spec)


def test_definition_adds_a_kind() -> None:
    catalogue = resources.control_plane().with_custom(custom_kinds.read(_definition()))
    house = catalogue.of_kind("example.com/v1", "House")
    assert house
    assert [part.name for part in house.subresources] == ["status", "scale"]
    assert house.short_names == ("ho",)
    assert house.columns[0].path == ".spec.size"
    listed = discovery.api_resources(catalogue, "example.com", "v1")
    assert listed
    assert len(list_at(listed, "resources")) == 3
    assert catalogue.groups[-1].name == "example.com"


def test_kind_is_documented_from_its_definition() -> None:
    catalogue = resources.control_plane().with_custom(custom_kinds.read(_definition()))
    document = openapi.document(catalogue, "example.com", "v1") or {}
    schemas = object_at(document, "components", "schemas")
    house = object_at(schemas, "com.example.v1.House")
    properties = object_at(house, "properties")
    size = object_at(properties, "spec", "properties")["size"]

    assert house["description"] == "Somewhere to live."
    assert size == {"type": "integer", "description": "How many rooms it has."}
    reference = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert properties["metadata"] == {"allOf": [{"$ref": reference}]}


def test_changed_definition_replaces_its_versions() -> None:
    second: Json = {**VERSION, "name": "v2"}
    catalogue = resources.control_plane().with_custom(custom_kinds.read(_definition()))
    catalogue = catalogue.with_custom(custom_kinds.read(_definition(versions=[second])))
    assert catalogue.of_kind("example.com/v1", "House") is None
    assert catalogue.of_kind("example.com/v2", "House")


def test_newest_stable_version_is_preferred() -> None:
    names = ("v1alpha1", "blue", "v1", "v10beta2", "v2beta1", "v2", "v11alpha2", "v10beta10", "azure")
    versions = [{**VERSION, "name": name, "storage": name == "v1"} for name in names]
    catalogue = resources.control_plane().with_custom(custom_kinds.read(_definition(versions=versions)))
    group = discovery.api_group(catalogue, "example.com")
    assert group
    assert object_at(group, "preferredVersion")["version"] == "v2"
    listed = [str(version["version"]) for version in objects_at(group, "versions")]
    assert " ".join(listed) == "v2 v1 v10beta10 v10beta2 v2beta1 v11alpha2 v1alpha1 azure blue"


def test_definition_cannot_replace_a_builtin_kind() -> None:
    names: Json = {"plural": "deployments", "kind": "Deployment"}
    wrong = _definition(group="apps", names=names).with_metadata({"name": "deployments.apps"})
    before = resources.control_plane()
    after = before.with_custom(custom_kinds.read(wrong))
    assert after.of_kind("apps/v1", "Deployment") is before.of_kind("apps/v1", "Deployment")


def test_lists_with_keys_are_merged_by_key() -> None:
    house = custom_kinds.read(_definition())[0]
    live: KubeObject | None = None
    for name in ("front", "back"):
        manager = managed_fields.Manager(name=name, operation="Apply")
        write = server_side_apply.Write(
            manager=manager,
            api_version="example.com/v1",
            time="",
            untouched=server_side_apply.untouched(house),
        )
        desired = KubeObject(_house_manifest(doors=[{"name": name}], labels={name: "x"}))
        live = server_side_apply.applied(live, desired, house.schema, write)
    assert live
    spec = live.object_at("spec")
    assert spec["doors"] == [{"name": "front"}, {"name": "back"}]
    assert spec["labels"] == {"front": "x", "back": "x"}


def test_unknown_fields_are_found_and_pruned() -> None:
    house = custom_kinds.read(_definition())[0]
    wrong = _house_manifest(
        size=1, colour="red", doors=[{"name": "a", "knob": 1}], free={"any": {"thing": 1}}
    )
    assert schema_validation.unknown_fields(wrong, house.schema) == ["spec.colour", "spec.doors[0].knob"]
    assert schema_validation.pruned(wrong, house.schema) == _house_manifest(
        size=1, doors=[{"name": "a"}], free={"any": {"thing": 1}}
    )


def test_scalars_and_lists_without_keys_are_read() -> None:
    assert openapi_schemas.from_openapi({"x-kubernetes-int-or-string": True}) == Scalar(form="intstr")
    listed = openapi_schemas.from_openapi({"type": "array", "items": {"type": "string"}})
    assert listed == ListOf(item=Scalar(form="str"))
    marked = openapi_schemas.from_openapi(
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    )
    assert marked == ListOf(item=Scalar(form="str"), relation="set")


WRONG: list[tuple[KubeObject, str]] = [
    (_definition(scope="Everywhere"), "spec.scope"),
    (_definition(group=""), "spec.group"),
    (_definition(versions=[{"name": "v1", "served": True}]), "schemas are required"),
    (_definition().with_metadata({"name": "other"}), "houses.example.com"),
]


@pytest.mark.parametrize(("definition", "words"), WRONG)
def test_invalid_definition_is_refused(definition: KubeObject, words: str) -> None:
    with pytest.raises(custom_kinds.DefinitionError, match=words):
        custom_kinds.read(definition)


def test_definition_may_serve_no_version() -> None:
    assert custom_kinds.read(_definition(versions=[{**VERSION, "served": False}])) == ()


def test_deeply_nested_schema_is_refused() -> None:
    deep: Json = {"type": "string"}
    for _level in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(custom_kinds.DefinitionError, match="nested deeper"):
        openapi_schemas.from_openapi(deep)


def test_definition_with_long_field_name_takes_memory_of_its_size() -> None:
    fields: Json = {f"field{index}": {"type": "object"} for index in range(2_000)}
    schema: Json = {"type": "object", "properties": {"a" * 50_000: {"type": "object", "properties": fields}}}
    definition = _definition(versions=[{**VERSION, "schema": {"openAPIV3Schema": schema}}])
    tracemalloc.start()
    kinds = custom_kinds.read(definition)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kinds) == 1
    assert most < 10 * 1024 * 1024


def test_unknown_fields_are_listed_up_to_a_number() -> None:
    room: Json = {"type": "object", "properties": {}}
    spec: Json = {"type": "object", "additionalProperties": room}
    schema: Json = {"type": "object", "properties": {"spec": spec}}
    house = custom_kinds.read(_definition(versions=[{**VERSION, "schema": {"openAPIV3Schema": schema}}]))[0]
    rooms: Json = {f"room{index}": {"x": 1, "y": 1} for index in range(60)}
    listed = schema_validation.unknown_fields(_house_manifest(**rooms), house.schema)
    assert listed == [f"spec.room{index}.{field}" for index in range(50) for field in "xy"]


def test_errors_about_a_long_field_name_take_bounded_memory() -> None:
    fields: Json = {f"field{index}": {} for index in range(2_000)}
    schema: Json = {"type": "object", "properties": {"a" * 50_000: {"type": "object", "properties": fields}}}
    definition = _definition(versions=[{**VERSION, "schema": {"openAPIV3Schema": schema}}])
    wrong = messages.bounded(definitions.definition(definition, None))
    assert wrong
    assert sum(len(cause.text) for cause in wrong) < 2 * 1024 * 1024


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ({}, []),
        ({"labelSelectorPath": ".status.selector"}, []),
        (
            {"specReplicasPath": ".metadata.name"},
            ['specReplicasPath: Invalid value: ".metadata.name": should be a json path under .spec'],
        ),
        (
            {"specReplicasPath": "."},
            ['specReplicasPath: Invalid value: ".": should be a json path under .spec'],
        ),
        (
            {"statusReplicasPath": "status.n"},
            ['statusReplicasPath: Invalid value: "status.n": must be a simple json path starting with .'],
        ),
        (
            {"labelSelectorPath": ".metadata.labels"},
            [f'labelSelectorPath: Invalid value: ".metadata.labels": {_UNDER_EITHER}'],
        ),
    ],
)
def test_paths_of_the_scale_are_below_spec_and_status(scale: Json, words: list[str]) -> None:
    paths = {**object_at(VERSION, "subresources", "scale"), **scale}
    version = {**VERSION, "subresources": {"scale": paths}}
    wrong = definitions.definition(_definition(versions=[version]), None)
    assert [cause.text.removeprefix("spec.subresources.scale.") for cause in wrong] == words


def test_kind_with_the_name_of_another_is_not_served() -> None:
    names: Json = {"plural": "homes", "kind": "House"}
    second = _definition(names=names).with_metadata({"name": "homes.example.com"})
    both = [*custom_kinds.read(_definition()), *custom_kinds.read(second)]
    catalogue = resources.control_plane().with_custom(both)
    house = catalogue.of_kind("example.com/v1", "House")
    assert house
    assert house.plural == "houses"
    assert catalogue.resource("example.com", "v1", "homes") is None


def test_custom_kind_cannot_have_the_name_of_a_builtin_kind() -> None:
    group = "policy.karmada.io"
    names: Json = {"plural": "pps", "kind": "PropagationPolicy"}
    version: Json = {**VERSION, "name": "v1alpha1"}
    wrong = _definition(group=group, names=names, versions=[version]).with_metadata({"name": f"pps.{group}"})
    before = resources.control_plane()
    after = before.with_custom(custom_kinds.read(wrong))
    assert after.of_kind(f"{group}/v1alpha1", "PropagationPolicy") is before.of_kind(
        f"{group}/v1alpha1", "PropagationPolicy"
    )


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"scope": "Cluster"}, ["spec.scope"]),
        ({"names": {"plural": "houses", "kind": "Home"}}, ["spec.names.kind"]),
        ({"names": {"plural": "houses", "kind": "House", "shortNames": ["h"]}}, []),
    ],
)
def test_scope_and_kind_of_a_definition_are_immutable(spec: Json, fields: list[str]) -> None:
    """Else the objects that exist could no longer be read or deleted."""
    wrong = definitions.definition(_definition(**spec), _definition())
    assert [cause.field for cause in wrong] == fields


def test_group_of_a_definition_has_a_dot() -> None:
    definition = _definition(group="apps").with_metadata({"name": "houses.apps"})
    wrong = definitions.definition(definition, None)
    words = 'spec.group: Invalid value: "apps": should be a domain with at least one dot'
    assert [cause.text for cause in wrong] == [words]
