"""Statuses in the views: arbitrary content is shown or skipped, and never raises."""

import msgspec
import pytest

from events import shapes
from events.json_values import decoded
from projections.documents import field_owners
from projections.documents.objects import object_document
from projections.objects import ObjectRow


@pytest.mark.parametrize("raw", [b"", b"7", b"null", b'{"a":"\\ud800"}', b'{"a":\xff}', b'{"a":' * 5_000])
def test_invalid_status_shows_nothing(raw: bytes) -> None:
    assert decoded(raw) in ({}, {"a": "\ud800"})


def test_status_is_shown_as_written() -> None:
    manifest = msgspec.json.encode({"apiVersion": "example.io/v1", "kind": "Gauge", "metadata": {}})
    row = ObjectRow(
        key="default/pressure-gauge",
        kind="Gauge",
        namespace="default",
        name="pressure",
        api_version="example.io/v1",
        number=7,
        version=2,
        generation=1,
        uid="u",
        created_ms=1_716_630_591_120,
        labels="",
        manifest=manifest,
        status=b'{"bars":3}',
    )
    assert object_document(row, None, None).at("status") == {"bars": 3}
    assert "status" not in object_document(row._replace(status=b""), None, None).document


@pytest.mark.parametrize(
    "raw",
    ["7", "null", '{"f:status":7}', '{"f:status":{"f:a":"\\ud800"}}', '{"a":' * 5_000 + "1" + "}" * 5_000],
)
def test_arbitrary_managed_fields_are_shown(raw: str) -> None:
    owned = shapes.FieldsOwner(
        manager="agent", operation="Update", api_version="v1", fields_v1=msgspec.Raw(raw.encode())
    )
    for shown in field_owners.entries((owned, *field_owners.decode(field_owners.encode((owned,))))):
        assert shown.get("manager") == "agent"
        assert "b" not in field_owners.status_fields([shown])


@pytest.mark.parametrize("raw", [b"", b"7", b"[7]", b"[{}]"])
def test_row_with_invalid_managers_has_none(raw: bytes) -> None:
    assert field_owners.decode(raw) == ()


def test_managed_fields_of_the_engine_are_not_stored() -> None:
    engines = field_owners.of_status("apps/v1", {"replicas": 3})
    assert field_owners.of_entries([engines, 7, {"manager": "a"}]) == ()
