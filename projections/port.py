"""What a view asks of the tables that it is kept in, whatever holds them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

Value = int | str | bytes | None
Row = tuple[Value, ...]
Found = tuple[Any, ...]
"""A row as the tables give it; the statement says what its columns are, and whoever reads it names their types."""


class ProjectionError(Exception):
    """A read model can't go on; the message says what to do next."""


class Rows(Protocol):
    """Tables within one transaction, or one consistent look at them."""

    def select(self, statement: str, where: Sequence[Value] = ()) -> list[Found]:
        """The rows that the statement gives."""
        ...

    def scan(self, statement: str, where: Sequence[Value] = ()) -> Iterator[Found]:
        """The same rows, one by one, for one who may not want them all."""
        ...

    def write(self, statement: str, rows: Iterable[Row]) -> None:
        """Runs the statement once for each row."""
        ...


class View(Protocol):
    """One read model: it takes in what counts, and writes what changed when a batch ends."""

    def flush(self, rows: Rows) -> None:
        """Writes what changed since the last time."""
        ...
