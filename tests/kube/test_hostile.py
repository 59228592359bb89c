"""Arbitrary objects: every function returns a result or raises its own error."""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.karmada import defaults, rules
from engine.kubeapi.admission import schema_validation
from engine.kubeapi.conversion import scales
from engine.kubeapi.patching import (
    empty_values,
    field_paths,
    managed_fields,
    patches,
    server_side_apply,
    strategic_merge,
)
from engine.kubeapi.requests import body_checks
from engine.kubeapi.schema import custom_kinds, resources, type_errors
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Schema
from engine.kubeapi.schema.types import parsing
from engine.kubeapi.schema.types.parsing import resolved
from engine.kubeapi.tables import tables
from engine.writing.edits.objects import form_causes
from events.json_values import Json, as_list, as_object
from events.kube_objects import KubeObject

SCALARS = st.sampled_from(
    [None, True, False, -1, 0, 1, 2, "", "a", "b", "delete", "replace", "Apply", "NoExecute", "1"]
)
JUNK = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(["a", "$patch"]), below, max_size=2)
    ),
    max_leaves=4,
)
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
KINDS = st.sampled_from(resources.control_plane().resources)
DEPTH = 9


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = DEPTH, *, patch: bool = False) -> object:
    """A value of a schema; now and then another value at a random place."""
    schema = resolved(schema)
    if depth == 0 or draw(st.integers(0, 11)) == 0:
        return draw(JUNK)
    match schema:
        case Fields():
            names = list(schema.fields)
            chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
            drawn = {
                name: draw(values(schema.fields[name].schema, depth - 1, patch=patch)) for name in chosen
            }
            if patch and names and draw(st.integers(0, 3)) == 0:
                directive = draw(st.sampled_from(DIRECTIVES))
                suffix = draw(st.sampled_from(names)) if directive.endswith("/") else ""
                drawn[directive + suffix] = draw(JUNK)
            return drawn
        case ListOf():
            return draw(st.lists(values(schema.item, depth - 1, patch=patch), max_size=3))
        case MapOf():
            return draw(st.dictionaries(st.sampled_from("ab"), values(schema.value, depth - 1), max_size=2))
        case _:
            return draw(SCALARS if draw(st.integers(0, 5)) else JUNK)


@st.composite
def objects(draw: st.DrawFn, resource: resources.Resource, *, patch: bool = False) -> Json:
    fields = resolved(resource.schema)
    assert isinstance(fields, Fields)
    drawn: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
    for name in ("metadata", "spec", "status"):
        if name in fields.fields and draw(st.booleans()):
            drawn[name] = draw(values(fields.fields[name].schema, patch=patch))
    return drawn


WRITE = server_side_apply.Write(
    manager=managed_fields.Manager(name="me", operation="Update"),
    api_version="v1",
    time="",
    untouched=(("f:status",),),
)
REFUSALS = (
    server_side_apply.ApplyError,
    server_side_apply.ApplyConflictError,
    managed_fields.ManagedFieldsError,
    strategic_merge.StrategicMergeError,
    custom_kinds.DefinitionError,
    scales.ScaleError,
    patches.PatchError,
)


@pytest.mark.slow
@given(st.data(), KINDS)
def test_arbitrary_writes_raise_their_own_errors_only(
    data: st.DataObject, resource: resources.Resource
) -> None:
    live, new = KubeObject(data.draw(objects(resource))), KubeObject(data.draw(objects(resource)))
    patch = data.draw(objects(resource, patch=True))
    tries: list[Callable[[], KubeObject]] = [
        lambda: server_side_apply.updated(live, new, resource.schema, WRITE),
        lambda: server_side_apply.applied(live, new, resource.schema, WRITE, force=True),
        lambda: KubeObject(strategic_merge.patched(live.document, patch, resource.schema)),
        lambda: scales.scaled(resource, live, scales.scale_of(resource, new)),
    ]
    for attempt in tries:
        try:
            assert as_object(attempt().document) is not None
        except REFUSALS:
            continue


@given(st.data(), KINDS)
def test_arbitrary_objects_are_rendered_and_pruned(data: st.DataObject, resource: resources.Resource) -> None:
    value = data.draw(objects(resource))
    rows = as_list(tables.table(resource, [KubeObject(value)], 0, metadata={})["rows"])
    assert len(rows or []) == 1
    pruned = schema_validation.pruned(value, resource.schema)
    assert schema_validation.unknown_fields(pruned, resource.schema) == []


@given(st.data(), KINDS)
def test_typed_objects_have_no_wrong_or_unknown_fields(
    data: st.DataObject, resource: resources.Resource
) -> None:
    value, schema = data.draw(objects(resource)), resource.schema
    is_typed = body_checks.is_typed(value, schema)
    if is_typed:
        assert not resource.is_kubernetes_own or type_errors.mistyped(value, schema) is None
        assert schema_validation.unknown_fields(value, schema) == []
    assert is_typed or not body_checks.is_plain(value, schema)


def test_objects_that_kubectl_creates_are_typed() -> None:
    deployment = resources.built_in().of_kind("apps/v1", "Deployment")
    assert deployment is not None
    container: Json = {"name": "nginx", "image": "nginx", "resources": {}}
    metadata: Json = {"name": "web", "creationTimestamp": None}
    template: Json = {"metadata": metadata, "spec": {"containers": [container]}}
    head: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    created: Json = {**head, "spec": {"strategy": {}, "template": template}, "status": {}}
    assert body_checks.is_typed(created, deployment.schema)
    assert not body_checks.is_typed({**created, "state": {}}, deployment.schema)
    assert not body_checks.is_plain(created, deployment.schema)


@given(st.data(), KINDS.filter(lambda resource: resource.is_kubernetes_own))
def test_plain_objects_need_no_further_checks(data: st.DataObject, resource: resources.Resource) -> None:
    value, schema = data.draw(objects(resource)), resource.schema
    if body_checks.is_plain(value, schema):
        assert type_errors.mistyped(value, schema) is None
        assert schema_validation.unknown_fields(value, schema) == []
        assert empty_values.without(value, schema) is value


@given(st.data(), KINDS)
def test_first_writer_owns_what_a_blank_object_does_not_have(
    data: st.DataObject, resource: resources.Resource
) -> None:
    value, schema = data.draw(objects(resource)), resource.schema
    before = field_paths.content_by_path(parsing.blank(schema), schema)
    owned = frozenset(
        path
        for path, current in field_paths.content_by_path(value, schema).items()
        if _is_new(before, path, current)
    )
    assert server_side_apply.of_first_write(value, schema) == managed_fields.fields_v1(owned)


def _is_new(before: Mapping[managed_fields.Path, object], path: managed_fields.Path, current: object) -> bool:
    inner = (field_paths.OWNED_ENTRY, field_paths.CONTAINER)
    if path not in before:
        return True
    was = before[path]
    return was not in inner and current not in inner and not field_paths.same(was, current)


@pytest.mark.slow
@given(st.data(), KINDS.filter(lambda resource: resource.group.endswith("karmada.io")))
def test_arbitrary_objects_pass_admission_or_have_causes(
    data: st.DataObject, resource: resources.Resource
) -> None:
    value = defaults.with_defaults(KubeObject(data.draw(objects(resource))), 0)
    old = data.draw(st.none() | objects(resource).map(KubeObject))
    for cause in (*form_causes(value), *rules.rule_causes(value, old)):
        assert cause.message


DEFINITIONS = resources.control_plane().resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")


@pytest.mark.slow
@given(st.data())
def test_arbitrary_definitions_are_read_or_refused(data: st.DataObject) -> None:
    assert DEFINITIONS
    value = KubeObject(data.draw(objects(DEFINITIONS)))
    try:
        kinds = custom_kinds.read(value)
    except custom_kinds.DefinitionError:
        return
    assert kinds


@given(
    JUNK, st.lists(st.fixed_dictionaries({"op": JUNK, "path": JUNK}, optional={"value": JUNK, "from": JUNK}))
)
def test_arbitrary_json_patches_apply_or_raise_patch_errors(value: object, operations: list[Json]) -> None:
    try:
        patches.json_patched(value, operations)
    except patches.PatchError:
        assert operations


ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "operation": JUNK,
        "manager": JUNK,
        "time": JUNK,
        "fieldsType": JUNK,
        "fieldsV1": JUNK | st.dictionaries(st.sampled_from(["f:a", "k:{", "v:1", "."]), JUNK, max_size=2),
    },
)


@pytest.mark.slow
@given(st.lists(ENTRY) | JUNK)
def test_arbitrary_managed_fields_are_read_or_refused(entries: object) -> None:
    try:
        owners = managed_fields.read(KubeObject({"metadata": {"managedFields": entries}}))
    except managed_fields.ManagedFieldsError:
        return
    written = managed_fields.write(owners)
    again = KubeObject({"metadata": {"managedFields": written}})
    assert managed_fields.write(managed_fields.read(again)) == written
