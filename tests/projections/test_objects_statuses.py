"""Statuses in the views: what anybody may have written to a log is shown, or passed over, and never stops a reader."""

import msgspec
import pytest

from projections.documents import ObjectRow, decoded, object_document


@pytest.mark.parametrize("raw", [b"", b"7", b"null", b'{"a":"\\ud800"}', b'{"a":\xff}', b'{"a":' * 5_000])
def test_what_is_no_object_shows_nothing(raw: bytes) -> None:
    assert decoded(raw) in ({}, {"a": "\ud800"})


def test_a_status_is_shown_as_it_was_written() -> None:
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
    assert object_document(row, None, None)["status"] == {"bars": 3}
    assert "status" not in object_document(row._replace(status=b""), None, None)
