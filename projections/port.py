"""Protocols between projections and the tables that store them, independent of SQLite."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Value = int | str | bytes | None
Row = tuple[Value, ...]
ResultRow = tuple[Any, ...]
"""A row of a query result; the statement determines its columns, and the caller annotates their types."""


class ProjectionError(Exception):
    """A projection cannot continue; the message contains a remedy."""


class NotKeptError(ProjectionError):
    """Records that an as-of view needs are no longer in the log."""


class UnwritableError(ProjectionError):
    """The tables could not be written and are unchanged; a later attempt may succeed."""


class Queryable(Protocol):
    """Tables, or one consistent read of the tables; for functions that run a single query."""

    def select(self, statement: str, where: Sequence[Value] = ()) -> list[ResultRow]:
        """Return all rows of a query; may block while another thread reads."""
        ...


class Rows(Queryable, Protocol):
    """Access to the tables within one transaction or one consistent read."""

    def scan(self, statement: str, where: Sequence[Value] = ()) -> Iterator[ResultRow]:
        """Yield the rows of a query one by one, for callers that may not need all."""
        ...

    def write(self, statement: str, rows: Iterable[Row]) -> None:
        """Execute the statement once per row."""
        ...


class Tables(Queryable, Protocol):
    """Read access to the tables of all projections."""

    def reading(self) -> AbstractContextManager[Rows]:
        """Hold one consistent read of all tables; may block while another thread reads."""
        ...


class Views(Protocol):
    """Projections that follow a log, in this process or another."""

    @property
    def folded(self) -> int:
        """The number of the last record that is visible to queries."""
        ...

    @property
    def store(self) -> Tables:
        """The current tables."""
        ...

    async def wait_folded(self, number: int) -> None:
        """Return when all records up to ``number`` are visible to queries."""
        ...


class View(Protocol):
    """One projection: collects changes in memory and writes them at the end of a batch."""

    def flush(self, rows: Rows) -> None:
        """Write the changes since the last call."""
        ...
