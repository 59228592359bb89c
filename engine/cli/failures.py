"""How a command ends when it can't do what was asked: the exit codes, and the one error that carries them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""Refused, not found, or not as it was asked to be."""
USAGE: Final = 2
"""The command line itself is wrong."""
NO_SERVER: Final = 3
"""No server answers."""


class Failure(Exception):  # noqa: N818  # it ends a command with words for people, and is no fault of the program
    """Ends the command: what is wrong, what to do, and the exit code."""

    def __init__(self, message: str, remedy: str = "", *, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code


def usage(message: str, remedy: str = "") -> Failure:
    """The command line is wrong."""
    return Failure(message, remedy, code=USAGE)
