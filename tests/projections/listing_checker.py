"""Checks lists against changes: every difference between two lists must have a number, and an event under it.

It folds a log in parts from the first record on, lists all kinds after each part, and compares. Findings are
sentences; correct views have none.
"""

import asyncio
import bisect
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from events.records import StoredRecord
from events.validation import manifests
from projections import changes, object_tables
from projections.port import Rows
from projections.runner import Projector
from projections.store import Store

Json = dict[str, Any]
Shown = dict[tuple[str, int, int], Json]
"""Objects by kind, as the view of changes calls it, and by the numbers of their keys and clusters."""

_DERIVED: Final = (
    object_tables.Kind("cluster.karmada.io/v1alpha1", "Cluster"),
    object_tables.Kind("work.karmada.io/v1alpha2", "ResourceBinding"),
    object_tables.Kind("work.karmada.io/v1alpha2", "ClusterResourceBinding"),
    object_tables.Kind("work.karmada.io/v1alpha1", "Work"),
)
_ROW_KEYS: Final = {
    "Cluster": "SELECT id, 0 FROM clusters",
    "ResourceBinding": "SELECT b.id, 0 FROM bindings b JOIN keys USING (id) WHERE instr(key, '/') > 0",
    "ClusterResourceBinding": "SELECT b.id, 0 FROM bindings b JOIN keys USING (id) WHERE instr(key, '/') = 0",
    "Work": "SELECT id, cluster FROM works",
}
_words: Final = {changes.ADDED: "ADDED", changes.MODIFIED: "MODIFIED", changes.DELETED: "DELETED"}


def shown(rows: Rows) -> Shown:
    """Return all objects of all kinds."""
    documents: Shown = {}
    kinds = [
        object_tables.Kind(*row) for row in rows.select("SELECT DISTINCT api_version, kind FROM objects")
    ]
    for kind in (*_DERIVED, *kinds):
        statement = _ROW_KEYS.get(kind.kind)
        row_keys = rows.select(statement) if statement else []
        if statement is None:
            row_keys = rows.select(
                "SELECT id, 0 FROM objects WHERE kind = ? AND api_version = ?", (kind.kind, kind.api_version)
            )
        for (key_id, member), value in object_tables.by_keys(
            rows, kind, [(a, b) for a, b in row_keys]
        ).items():
            # Encoded and decoded, as clients see the objects.
            documents[kind.of_change, key_id, member] = msgspec.json.decode(
                msgspec.json.encode(value.document)
            )
    return documents


def compare(
    before: Shown, after: Shown, reported: Sequence[changes.Change], start: int, end: int
) -> Iterator[str]:
    """Yield the faults of the changes between two lists, taken at the numbers ``start`` and ``end``."""
    last: dict[tuple[str, int, int], changes.Change] = {}
    for change in reported:
        row_key = (change.kind, change.key_id, change.member)
        if row_key in last and change.number <= last[row_key].number:
            yield f"{row_key} has two changes under number {change.number}"
        last[row_key] = change
    for row_key in sorted(before.keys() | after.keys()):
        old, new = before.get(row_key), after.get(row_key)
        if old == new:
            continue
        change = last.get(row_key)
        name = f"{row_key[0]} {_name(new or old or {})} between {start} and {end}"
        if change is None:
            yield f"{name}: a list shows it otherwise, and there is no event: {_differing(old, new)}"
        elif new is None:
            yield from _removal(name, change, old or {}, is_next=reported[0].number == reported[-1].number)
        elif change.verb == changes.DELETED:
            yield f"{name}: it is listed, and the last event is a deletion"
        elif _number(new) != change.number:
            yield f"{name}: it has number {_number(new)}, its last event {change.number}"


def _removal(name: str, change: changes.Change, old: Json, *, is_next: bool) -> Iterator[str]:
    """Yield the faults of a removal's event; ``is_next``: it is the next record after the list."""
    if change.verb != changes.DELETED:
        yield f"{name}: it is gone, and the last event is {_words[change.verb]}"
        return
    last: Json = msgspec.json.decode(change.body or b"{}")
    if _number(last) != change.number:
        yield f"{name}: its deletion carries another number than {change.number}"
    if is_next and (before := _comparable(old)) != (after := _comparable(last)):
        yield f"{name}: its deletion shows it otherwise than the list before: {_differing(before, after)}"


def _comparable(document: Json) -> Json:
    """Return the document without its number, and a Work without parts derived from its template and overrides."""
    left_out = {"resourceVersion"}
    is_work = document.get("kind") == "Work"
    if is_work:
        left_out |= {"annotations", "managedFields", "ownerReferences"}
    metadata = {name: value for name, value in document["metadata"].items() if name not in left_out}
    return {**document, "metadata": metadata, "spec": None if is_work else document.get("spec")}


async def check(records: Sequence[StoredRecord], every: int = 1) -> list[str]:
    """Return the faults of the views of a log, checked after every ``every`` records."""
    log, faults = _Records(records), list[str]()
    store = await asyncio.to_thread(Store)
    projector = Projector(log, store, manifests.check)
    before: Shown = {}
    start = 0
    for index in [*range(every - 1, len(records) - 1, every), len(records) - 1]:
        end = records[index].number
        await projector.fold_to(end)
        after, reported = await asyncio.to_thread(_look, store, start, end)
        faults += compare(before, after, reported, start, end)
        before, start = after, end
    projector.close()
    await asyncio.to_thread(store.close)
    return faults


def _look(store: Store, start: int, end: int) -> tuple[Shown, list[changes.Change]]:
    with store.reading() as rows:
        return shown(rows), changes.between(rows, start, end)


class _Records:
    """Records as a source of views."""

    def __init__(self, records: Sequence[StoredRecord]) -> None:
        self._records = records

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        partition_records = [
            record for record in self._records if (record.topic, record.partition) == (topic, partition)
        ]
        return [record for record in partition_records if record.offset >= start][:limit]

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        # Numbers may have gaps.
        first = bisect.bisect_right(self._records, after, key=lambda record: record.number)
        return list(self._records[first : first + limit])

    def last_number(self) -> int:
        return self._records[-1].number

    async def wait(self, after: int) -> None:
        del after


def _number(document: Json) -> int:
    return int(document["metadata"]["resourceVersion"])


def _name(document: Json) -> str:
    metadata = document.get("metadata", {})
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _differing(old: Json | None, new: Json | None) -> str:
    """Return the fields in which two documents differ."""
    before, after = old or {}, new or {}
    names = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    parts = (f"{name}: {str(before.get(name))[:200]} -> {str(after.get(name))[:200]}" for name in names)
    return ", ".join(parts)
