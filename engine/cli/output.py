"""Output of tables, JSON and YAML. Control characters are removed from table cells."""

import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import msgspec

from engine import broken_pipes
from engine.cli import failures

SHOWN_MAX: Final = 5
"""Maximum number of names or lines that a message lists; it ends with the number of the others."""

_GAP: Final = "   "
_WRAPPED_INDENT: Final = 4
"""Indent of a cell that ``table`` moves below its row."""

_WRAPPED_WIDTH_MIN: Final = 20
"""Minimum width of wrapped text after its indent, in characters."""

SILENT_SECONDS: Final = 2.0
"""How long a command works before ``waiting`` shows why it is silent."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CLEAR_LINE: Final = "\r\x1b[K"

Cell: TypeAlias = str | int | float | None
"""The value of a cell of a table."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, fits: bool = False, wraps: bool = False
) -> None:
    """Print aligned columns with a heading line, which is bold on a colour terminal.

    On a terminal, ``fits`` cuts lines at its width; ``wraps`` moves the last cell of a longer line to the lines below.
    Output to a pipe or file is not changed.
    """
    all_rows = [columns, *rows]
    width_max = width() if fits or wraps else None
    without_last = _lines([row[:-1] for row in all_rows]) if wraps else []
    for number, line in enumerate(_lines(all_rows)):
        text = _cut(line, width_max)
        is_wrapped = wraps and text != line
        if is_wrapped:
            text = without_last[number]
        print_line(f"\x1b[1m{text}\x1b[0m" if number == 0 and has_colours() else text)
        if is_wrapped:
            print_wrapped("", str(all_rows[number][-1]), _WRAPPED_INDENT)


def print_wrapped(heading: str, text: str, indent: int) -> None:
    """Print a text after a heading, wrapped on a terminal; all its lines begin at the column ``indent``."""
    line = clean(heading).ljust(indent) + clean(text)
    columns = width()
    if columns is None:
        print_line(line)
        return
    for part in textwrap.wrap(
        line,
        max(columns, indent + _WRAPPED_WIDTH_MIN),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    ):
        print_line(part)


def print_text(text: str) -> None:
    """Print lines of text, wrapped on a terminal; all parts of a line have its indent."""
    for line in text.split("\n"):
        words = line.lstrip(" ")
        if words:
            print_wrapped("", words, len(line) - len(words))
        else:
            print_line("")


def rows(
    columns: Sequence[str], all_rows: Sequence[Sequence[Cell]], chosen: Sequence[int], *, fits: bool = False
) -> None:
    """Print the rows at these indexes of a table, aligned as in the whole table; -1 is the heading line.

    On a terminal, ``fits`` cuts lines at its width.
    """
    lines = _lines([columns, *all_rows])
    for index in chosen:
        print_line(_cut(lines[index + 1], width() if fits else None))


def _cut(line: str, width_max: int | None) -> str:
    return line if width_max is None or len(line) <= width_max else f"{line[: width_max - 1]}…"


def _lines(rows: Sequence[Sequence[Cell]]) -> list[str]:
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def progress(text: str) -> None:
    """On a terminal, replace the progress line by this text; an empty text removes it. Elsewhere do nothing."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR_LINE + clean(text)[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()


@contextmanager
def clear_progress_after() -> Generator[None]:
    """Remove the line of progress when the block ends."""
    try:
        yield
    finally:
        progress("")


@contextmanager
def waiting(text: str) -> Generator[None]:
    """Show this text as progress if the block takes longer than ``SILENT_SECONDS``."""
    if not sys.stderr.isatty():
        yield
        return
    is_shown = threading.Event()

    def show() -> None:
        is_shown.set()
        progress(text)

    timer = threading.Timer(SILENT_SECONDS, show)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # The timer may be printing: clear its text only after that.
        timer.join()
        if is_shown.is_set():
            progress("")


def width() -> int | None:
    """Width of the terminal in characters; None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def has_colours() -> bool:
    """Whether the output is a terminal with colours (respects NO_COLOR, https://no-color.org, and TERM=dumb)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def clean(text: str) -> str:
    """Replace control characters, which could move the cursor or change colours."""
    return _CONTROL.sub(" ", text)


def print_line(line: str) -> None:
    """Print a line to standard output and flush it."""
    _write(line + "\n")


def _write(text: str) -> None:
    """Write to standard output and flush it; raises Failure if that fails, for example because a disk is full."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        broken_pipes.discard(sys.stdout)
        raise failures.Failure(f"standard output can't be written: {error.strerror}") from None


def shortened(texts: Sequence[str], more: str = "… and {} more") -> list[str]:
    """Return the first ``SHOWN_MAX`` texts. If there are more, add ``more``, with the number of omitted texts."""
    left_out = len(texts) - SHOWN_MAX
    return [*texts[:SHOWN_MAX], *([more.format(left_out)] if left_out > 0 else [])]


def joined(texts: Sequence[str]) -> str:
    """Return the first ``SHOWN_MAX`` texts in one line, and how many more there are."""
    return ", ".join(shortened(texts, "and {} more"))


def warn(line: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(clean(line) + "\n")


def json(value: object) -> None:
    """Print indented JSON."""
    print_line(_indented(value))


def print_failure(failure: failures.Failure, *, as_json: bool) -> None:
    """Print a failure to standard error, as text or as a JSON object."""
    if as_json:
        error = {"message": failure.message, "remedy": failure.remedy, "exitCode": failure.code}
        sys.stderr.write(_indented({"error": error}) + "\n")
        return
    warn(f"error: {failure.message}")
    if failure.remedy:
        warn(f"  {failure.remedy}")


def _indented(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def yaml(value: object) -> None:
    """Print YAML in kubectl's style."""
    from engine.cli import yaml_output  # noqa: PLC0415  # most commands print no YAML

    _write(yaml_output.dump(value))
