"""What a view asks of the tables that it is kept in, whatever holds them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Value = int | str | bytes | None
Row = tuple[Value, ...]
Found = tuple[Any, ...]
"""A row as the tables give it; the statement says what its columns are, and whoever reads it names their types."""


class ProjectionError(Exception):
    """A read model can't go on; the message says what to do next."""


class NotKeptError(ProjectionError):
    """What a look into the past needs of the log is not kept."""


class UnwritableError(ProjectionError):
    """The tables could not be written and stand where they stood; they may well be written later."""


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


class Tables(Protocol):
    """The tables of all views, for one who asks."""

    def reading(self) -> AbstractContextManager[Rows]:
        """One consistent look at all of them; blocks while another thread has it."""
        ...


class Views(Protocol):
    """Views that follow a log, wherever they are folded."""

    @property
    def folded(self) -> int:
        """The number of the last record that questions see."""
        ...

    @property
    def store(self) -> Tables:
        """The tables as they are now."""
        ...

    async def wait_folded(self, number: int) -> None:
        """Returns when everything up to a number can be asked for."""
        ...


class View(Protocol):
    """One read model: it takes in what counts, and writes what changed when a batch ends."""

    def flush(self, rows: Rows) -> None:
        """Writes what changed since the last time."""
        ...
