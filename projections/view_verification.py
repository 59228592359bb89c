"""Verification of the projections: fold the log again from its first record and compare the tables."""

import asyncio
import contextlib
import itertools
from typing import Final

from events.validation import verdicts
from projections import runner, store
from projections.port import ProjectionError, Rows

_SHOWN_CHARS_MAX: Final = 200


async def differing(
    log: runner.Source, views: store.Reader | store.Store, check: verdicts.Check
) -> dict[str, str]:
    """Rebuild the tables from the log and return the first difference of each table that differs, by table name.

    Compares one consistent read of the projections with the log up to their checkpoint; folding may continue
    meanwhile. Raises ProjectionError if the projections have no checkpoint.
    """
    stack = contextlib.ExitStack()
    rows = await asyncio.to_thread(stack.enter_context, views.reading())
    rebuilt = await asyncio.to_thread(store.Store)
    projector = runner.Projector(log, rebuilt, check)
    try:
        if "checkpoint" not in await asyncio.to_thread(_tables, rows):
            raise ProjectionError("they contain no checkpoint")
        ((number,),) = await asyncio.to_thread(rows.select, "SELECT number FROM checkpoint")
        await projector.fold_to(number)
        return await asyncio.to_thread(_compare, rebuilt, rows)
    finally:
        projector.close()
        await asyncio.to_thread(rebuilt.close)
        await asyncio.to_thread(stack.close)


def _compare(rebuilt: store.Store, rows: Rows) -> dict[str, str]:
    known = _tables(rows)
    with rebuilt.reading() as expected:
        return {
            name: difference
            for name in _tables(expected)
            if (difference := _differs(name, expected, rows) if name in known else "the table is missing")
        }


def _tables(rows: Rows) -> list[str]:
    names = rows.select("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [str(name) for (name,) in names]


def _differs(name: str, expected: Rows, actual: Rows) -> str:
    """Return the first difference of a table; empty if there is none."""
    width = len(expected.select(f"PRAGMA table_info({name})"))
    order = ", ".join(str(column) for column in range(1, width + 1))
    statement = f"SELECT * FROM {name} ORDER BY {order}"  # noqa: S608  # table names of our own schema
    for expected_row, actual_row in itertools.zip_longest(expected.scan(statement), actual.scan(statement)):
        if expected_row != actual_row:
            return (
                f"expected {str(expected_row)[:_SHOWN_CHARS_MAX]}, found {str(actual_row)[:_SHOWN_CHARS_MAX]}"
            )
    return ""
