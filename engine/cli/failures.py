"""The exit codes of commands, and the exception that carries them."""

import difflib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

OK: Final = 0
FAILED: Final = 1
"""Refused, not found, or a check that failed."""
USAGE: Final = 2
"""Invalid command line."""
DIFFERENT: Final = 2
"""The command was carried out, and something changes or differs, as for ``terraform plan -detailed-exitcode``."""
NO_SERVER: Final = 3
"""No server responds."""

_SIMILARITY_MIN: Final = 0.65
"""Smallest ``difflib`` ratio of two words at which one may be a misspelling of the other."""


class Failure(Exception):  # noqa: N818  # ends a command with a message; not an error of the program
    """End the command with a message, a remedy and an exit code."""

    def __init__(self, message: str, remedy: str = "", *, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code


class ServerBusy(Failure):
    """The server is busy with too many requests; the caller may send this one again later."""


@contextmanager
def convert(
    errors: type[Exception] | tuple[type[Exception], ...], remedy: str = "", *, where: object = ""
) -> Generator[None]:
    """Convert errors of these types into Failure.

    The message begins with ``where``; without ``where``, with the file name of an OSError. A message that
    already begins with this text does not repeat it.
    """
    try:
        yield
    except errors as error:
        subject = str(where or getattr(error, "filename", None) or "")
        reason = str((subject and getattr(error, "strerror", None)) or error)
        raise Failure(reason if reason.startswith(subject) else f"{subject}: {reason}", remedy) from None


def suggestion(word: str, names: Iterable[str], otherwise: str) -> str:
    """The remedy for an unknown word: the name that it probably misspells, or ``otherwise`` if none is similar."""
    close = difflib.get_close_matches(word, sorted(names), 1, _SIMILARITY_MIN)
    return f"did you mean {close[0]}?" if close else otherwise


def usage(message: str, remedy: str = "") -> Failure:
    """The failure for an invalid command line."""
    return Failure(message, remedy, code=USAGE)
