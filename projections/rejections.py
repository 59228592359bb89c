"""Projection of rejections: inputs without effect, with the field and the reason."""

from typing import Final

from events.rejections import InputRejected
from projections.port import Row, Rows

SCHEMA: Final = """
CREATE TABLE rejections (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    verdict TEXT NOT NULL,
    field TEXT NOT NULL,
    reason TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    content TEXT NOT NULL
);
"""


class Rejections:
    def __init__(self) -> None:
        self._new: list[Row] = []

    def add(self, number: int, time: str, rejected: InputRejected) -> None:
        row = (
            number,
            time,
            rejected.verdict,
            rejected.field,
            rejected.reason,
            rejected.topic,
            rejected.partition,
            rejected.offset,
            rejected.key,
            rejected.source,
            rejected.event_id,
            rejected.content,
        )
        self._new.append(row)

    def flush(self, rows: Rows) -> None:
        rows.write("INSERT INTO rejections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._new)
        self._new = []
