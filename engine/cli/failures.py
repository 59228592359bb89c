"""The exit codes of commands, and the exception that carries them."""

from collections.abc import Generator
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

CHECK_LOG: Final = "check the log: reballast log verify"
"""Remedy for a log that cannot be read."""


class Failure(Exception):  # noqa: N818  # ends a command with a message; not an error of the program
    """End the command with a message, a remedy and an exit code."""

    def __init__(self, message: str, remedy: str = "", *, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code


class ServerBusy(Failure):
    """The server cannot take the request now, since it carries out too many others; it may take it later."""


@contextmanager
def convert(
    errors: type[Exception] | tuple[type[Exception], ...], remedy: str = "", *, where: object = ""
) -> Generator[None]:
    """Convert errors of these types into Failure; the message begins with ``where``, if that is given."""
    try:
        yield
    except errors as error:
        reason = (where and getattr(error, "strerror", None)) or error
        raise Failure(f"{where}: {reason}" if where else str(reason), remedy) from None


def usage(message: str, remedy: str = "") -> Failure:
    """The failure for an invalid command line."""
    return Failure(message, remedy, code=USAGE)
