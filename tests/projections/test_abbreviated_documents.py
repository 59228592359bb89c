"""Abbreviated documents in large lists show the same as whole ones."""

from collections.abc import Iterator
from typing import cast

import msgspec
import pytest

from engine.kubeapi.schema.resources import control_plane
from engine.kubeapi.tables import tables
from events.json_values import Json
from projections import object_tables, query
from projections.port import Rows
from projections.store import Store
from tests.projections.logs import fold_all
from tests.projections.stories import Story

KIND = object_tables.Kind("work.karmada.io/v1alpha2", "ResourceBinding")
NOW_MS = 1_716_640_000_000


@pytest.fixture
def rows() -> Iterator[Rows]:
    story, store = Story(5), Store()
    fold_all(store, [*story.opening(), *(record for _ in range(200) for record in story.more())])
    with store.reading() as read_rows:
        assert read_rows.select("SELECT 1 FROM bindings LIMIT 1")
        yield read_rows
    store.close()


def plain(value: object) -> Json:
    return msgspec.json.decode(msgspec.json.encode(value), type=Json)


def test_listed_bindings_equal_single_ones(rows: Rows) -> None:
    keys = [str(key) for (key,) in rows.select("SELECT key FROM bindings JOIN keys USING (id)")]
    bindings = {key: query.get_binding(rows, key) for key in keys}
    page = object_tables.page(rows, object_tables.Selection(kind=KIND))
    assert len(page.items) == len(bindings)
    for item in (plain(shown.document) for shown in page.items):
        metadata = cast("Json", item["metadata"])
        managers = [field["manager"] for field in cast("list[Json]", metadata.pop("managedFields"))]
        assert set(managers) == {"reballast"}
        key = f"{metadata['namespace']}/{metadata['name']}"
        binding = bindings[key]
        assert binding is not None
        assert item == plain(binding.document)


def test_tables_of_abbreviated_bindings_equal_those_of_whole_ones(rows: Rows) -> None:
    resource = control_plane().resource("work.karmada.io", "v1alpha2", "resourcebindings")
    assert resource is not None
    whole, brief = (
        tables.table(
            resource,
            object_tables.page(rows, object_tables.Selection(kind=KIND, brief=is_brief)).items,
            NOW_MS,
            metadata={},
        )
        for is_brief in (False, True)
    )
    assert plain(whole) == plain(brief)
