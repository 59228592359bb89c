"""The schemas of the control plane's kinds: complete, and in agreement with the structs that deciders decode."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from engine.karmada import defaults
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Named, Scalar, Schema, Untyped
from engine.kubeapi.schema.types import parsing
from engine.objects import clusters, interpreters, manifest_yaml, placements, policies, taint_policies
from engine.objects.manifest_limits import Budget, Limits
from engine.overrides import application
from events.json_values import list_at, object_at
from events.kube_objects import KubeObject
from events.validation import kind_schemas, kinds_table

FILES = sorted((Path(kind_schemas.__file__).parent / "kinds").iterdir())
TYPES = sorted(kind_schemas.types())
STRUCTS: list[tuple[type[msgspec.Struct], str]] = [
    (policies.PolicySpec, "policy.karmada.PropagationSpec"),
    (placements.Placement, "policy.karmada.Placement"),
    (application.Overriders, "policy.karmada.Overriders"),
    (taint_policies.TaintPolicySpec, "policy.karmada.ClusterTaintPolicySpec"),
    (interpreters.Interpretation, "config.reballast.ReplicaInterpreterSpec"),
    (clusters.ClusterSpec, "cluster.karmada.ClusterSpec"),
    (clusters.ClusterStatus, "cluster.karmada.ClusterStatus"),
]
NOT_IN_TYPES = {(taint_policies.TaintPolicySpec, ".taints[].timeAdded")}
"""The struct of a cluster's taint also decodes those of policies, which have no time."""
WITHOUT_DESCRIPTIONS = {"autoscaling.karmada", "config.karmada", "networking.karmada", "remedy.karmada"}


def references(value: object) -> Iterator[str]:
    for name, item in object_at(value).items():
        if name == "$ref":
            yield str(item)
        yield from references(item)
    for item in list_at(value):
        yield from references(item)


def differences(struct_type: inspect.Type, schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of a struct that the schema does not have, or has with another type."""
    if isinstance(struct_type, inspect.UnionType):
        struct_type = next(member for member in struct_type.types if not isinstance(member, inspect.NoneType))
    match struct_type, parsing.resolved(schema):
        case inspect.StructType(), Fields(fields=fields):
            for field in struct_type.fields:
                below = f"{path}.{field.encode_name}"
                if field.encode_name in fields:
                    yield from differences(field.type, fields[field.encode_name].schema, below)
                else:
                    yield below
        case inspect.VarTupleType(), ListOf(item=item):
            yield from differences(struct_type.item_type, item, f"{path}[]")
        case inspect.DictType(), MapOf(value=value):
            yield from differences(struct_type.value_type, value, f"{path}.*")
        case inspect.StrType() | inspect.LiteralType() | inspect.EnumType(), Scalar(
            form="str" | "quantity" | "time"
        ):
            return
        case inspect.IntType(), Scalar(form="int"):
            return
        case inspect.BoolType(), Scalar(form="bool"):
            return
        case (inspect.RawType(), _) | (_, Untyped()):
            return
        case _:
            yield path


def test_no_key_and_no_type_is_written_twice() -> None:
    names: list[str] = []
    for path in FILES:
        budget = Budget(Limits(content_bytes_max=2**20, documents_max=1, depth_max=16, repeated_bytes_max=0))
        (document,) = manifest_yaml.documents(path.read_text(), budget)
        assert document.value == msgspec.yaml.decode(path.read_bytes()), path.name
        names += object_at(document.value)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", TYPES)
def test_every_key_of_a_schema_is_known_and_every_reference_defined(name: str) -> None:
    written = kind_schemas.types()[name]

    msgspec.convert(written, kind_schemas.Schema)
    for reference in references(written):
        assert parsing.named(reference)


@pytest.mark.parametrize("name", TYPES)
def test_every_field_has_a_description(name: str) -> None:
    if name.rpartition(".")[0] not in WITHOUT_DESCRIPTIONS:
        written = kind_schemas.types()[name]

        assert written.get("description")
        assert all(object_at(field).get("description") for field in object_at(written, "properties").values())


@pytest.mark.parametrize(("struct", "name"), STRUCTS)
def test_every_decoded_field_has_a_schema_of_its_type(struct: type[msgspec.Struct], name: str) -> None:
    differing = differences(inspect.type_info(struct), Named(name=name), "")

    assert [path for path in differing if (struct, path) not in NOT_IN_TYPES] == []


@pytest.mark.parametrize(
    ("struct", "name"),
    [
        (policies.PolicySpec, "policy.karmada.PropagationSpec"),
        (policies.ClusterFailover, "policy.karmada.ClusterFailover"),
        (policies.ApplicationFailover, "policy.karmada.ApplicationFailover"),
        (policies.DecisionConditions, "policy.karmada.DecisionConditions"),
    ],
)
def test_deciders_have_the_defaults_of_the_schemas(struct: type[msgspec.Struct], name: str) -> None:
    written = msgspec.convert(kind_schemas.types()[name], kind_schemas.Schema).properties
    decoded = {field.encode_name: field.default for field in msgspec.structs.fields(struct)}
    declared = {
        field: field_schema.default
        for field, field_schema in written.items()
        if field_schema.default is not None
    }

    assert declared
    assert {field: decoded.get(field, default) for field, default in declared.items()} == declared


@pytest.mark.parametrize("row", [*kinds_table.rows(kinds_table.KARMADA)])
def test_fixed_defaults_of_every_kind_are_set(row: kinds_table.Row) -> None:
    properties = object_at(kind_schemas.types().get(f"{row.package}.{row.kind}", {}), "properties")
    spec = kind_schemas.types().get(str(object_at(properties, "spec").get("$ref")), {})
    fields = {name: object_at(field) for name, field in object_at(spec, "properties").items()}
    declared = {name: field["default"] for name, field in fields.items() if "default" in field}

    value = KubeObject({"apiVersion": row.api_version, "kind": row.kind, "spec": {}})
    assert declared.items() <= defaults.with_defaults(value).object_at("spec").items()


def test_a_field_without_schema_is_found() -> None:
    assert list(differences(inspect.type_info(policies.Failover), Named(name="policy.karmada.Placement"), ""))
