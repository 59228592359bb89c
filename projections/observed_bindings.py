"""Projection of the bindings of an observed control plane: the number of the record with each one's newest version."""

from typing import Final

from events import observations
from projections.port import Rows

SCHEMA: Final = (
    "CREATE TABLE observed_bindings (key TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;"
)


class ObservedBindings:
    """Folds observed bindings."""

    def __init__(self) -> None:
        self._changed: dict[str, int | None] = {}

    def take(self, number: int, change: observations.ObjectObserved | observations.ObjectVanished) -> None:
        """Fold the next change of an object; only changes of bindings have an effect."""
        if change.is_binding:
            is_gone = isinstance(change, observations.ObjectVanished)
            self._changed[change.timeline_key] = None if is_gone else number

    def flush(self, rows: Rows) -> None:
        changed, self._changed = self._changed, {}
        rows.write(
            "DELETE FROM observed_bindings WHERE key = ?",
            ((key,) for key, number in changed.items() if number is None),
        )
        stored = ((key, number) for key, number in changed.items() if number is not None)
        rows.write("INSERT OR REPLACE INTO observed_bindings VALUES (?, ?)", stored)


def listed(rows: Rows, limit: int, after: str = "") -> list[tuple[str, int]]:
    """Return keys of observed bindings above ``after``, in order, each with the number of its newest record."""
    statement = "SELECT key, number FROM observed_bindings WHERE key > ? ORDER BY key LIMIT ?"
    return [(key, number) for key, number in rows.select(statement, (after, limit))]
