"""The table of Kubernetes' own types: complete, nothing beyond the served kinds, and of the pinned version."""

import re

from engine.kubeapi.patching import field_paths
from engine.kubeapi.schema.schemas import ListOf, MapOf, Named, Schema
from engine.kubeapi.schema.types import parsing
from events.json_values import Json
from tests.kube.types.__main__ import TABLE, head, roots


def _names() -> set[str]:
    """Return the types that the file defines."""
    names: set[str] = set()
    for part in TABLE.read_text(encoding="utf-8").split("\npackage ")[1:]:
        package, _line, types = part.partition("\n")
        names |= {f"{package}.{name}" for name in re.findall(r"^\w+", types, re.MULTILINE)}
    return names


def _reached() -> set[str]:
    """Return all types that the served kinds use, directly or nested; fails if one of them is not defined."""
    names: set[str] = set()
    unread: list[Schema] = [Named(name=f"{package}.{kind}") for _version, kind, package in roots()]
    while unread:
        match unread.pop():
            case Named(name=name) if name not in names:
                names.add(name)
                fields = parsing.named(name)
                unread += [field.schema for field in fields.fields.values()]
                unread += [wire.field.schema for wire in fields.wire.values()]
            case ListOf(item=schema) | MapOf(value=schema):
                unread.append(schema)
            case _:
                pass
    return names


def test_table_has_the_types_of_the_served_kinds_and_no_others() -> None:
    assert _names() == _reached()


def test_table_is_of_the_version_that_the_generator_pins() -> None:
    assert TABLE.read_text(encoding="utf-8").splitlines()[0] == head()


def test_claim_of_a_volume_is_merged_field_by_field_although_references_are_atomic() -> None:
    claim: Json = {"spec": {"claimRef": {"namespace": "shop", "name": "data"}}}
    owned = field_paths.owned(claim, parsing.named("core.PersistentVolume"))
    assert {path[2:] for path in owned} == {("f:name",), ("f:namespace",)}
    reference: Json = {"involvedObject": {"namespace": "shop", "name": "data"}}
    assert field_paths.owned(reference, parsing.named("core.Event")) == {("f:involvedObject",)}
