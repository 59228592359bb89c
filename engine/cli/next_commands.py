"""Commands that messages tell the user to run next, with the options with which the present command was run.

Without ``--data``, the next command would read another directory.
"""

import shlex
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Final

PROGRAM: Final = "reballast"
DATA: Final = "--data"
LOG: Final = "--log"
_DEFAULT: Final = "default"

_arguments: ContextVar[Sequence[str]] = ContextVar("arguments", default=())


def store_arguments(arguments: Sequence[str]) -> None:
    """Store the arguments of the running command, whose options ``command`` repeats."""
    _arguments.set(arguments)


def command(words: str, *options: str, program: str = PROGRAM) -> str:
    """The command ``reballast WORDS``, with the values that the user gave for ``--data`` and ``options``."""
    repeated = [shlex.join(_words_of(option)) for option in (*options, DATA)]
    return " ".join((program, words, *filter(None, repeated)))


def hint(purpose: str, words: str, *options: str) -> str:
    """A remedy: the purpose of the next command, then what ``command`` returns for it."""
    return f"{purpose}: {command(words, *options)}"


def up(directory: Path) -> str:
    """The command that starts the server of a directory."""
    return f"{PROGRAM} up {DATA} {shlex.quote(str(directory))}"


def namespace(name: str) -> str:
    """The option for a namespace, with a leading space; empty for the default namespace and for an empty name."""
    return f" -n {name}" if name not in {"", _DEFAULT} else ""


def check_log() -> str:
    """The remedy for a log that cannot be read."""
    return hint("check the log", "log verify", LOG)


def _words_of(option: str) -> Sequence[str]:
    """The option with its value, as the user wrote it; empty if it is not given."""
    arguments = _arguments.get()
    for number, argument in enumerate(arguments):
        if argument.startswith(f"{option}="):
            return (argument,)
        if argument == option:
            return arguments[number : number + 2]
    return ()
