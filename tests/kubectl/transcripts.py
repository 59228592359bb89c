"""A kubectl session recorded on a real Kubernetes, to be repeated on Reballast.

``python -m tests.kubectl.transcripts KUBECONFIG`` records it again (see ``tests.clusters``). It contains
nothing that a cluster's controllers change: no replicas and no running Jobs.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.kubectl.commands import SECONDS, found_program

FOLDER: Final = Path(__file__).parent / "transcript"
NAMESPACE: Final = "transcript"
_REAL: Final = FOLDER / "real.txt"
_PROMPT: Final = "$ kubectl "
_CODE: Final = "exit code "
_VALUE_OPTIONS: Final = ("-p ", "-l ")
_CHANGING: Final = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b(\d+m)?\d+s(?= |$)", re.MULTILINE), "AGE"),
    (re.compile(r" +"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
)
"""Patterns of output that differs between runs, and their replacements; column widths vary too."""


class Command(Struct, frozen=True):
    """A command, its output (stderr last) and its exit code."""

    command: str
    printed: str
    code: int


def recorded() -> list[Command]:
    """Return the session recorded on the real cluster."""
    return list(_read(_REAL.read_text()))


def played(kubeconfig: Path, home_directory: Path) -> Iterator[Command]:
    """Run the session on a cluster, in a new namespace that the last commands delete."""
    own = home_directory / "kubeconfig"
    shutil.copy(kubeconfig, own)
    _run(own, home_directory, "create", "namespace", NAMESPACE)
    _run(own, home_directory, "config", "set-context", "--current", f"--namespace={NAMESPACE}")
    for command in (FOLDER / "commands.txt").read_text().splitlines():
        done = _run(own, home_directory, *_words(command))
        yield Command(command, _settled(done.stdout + done.stderr), done.returncode)


def _words(command: str) -> list[str]:
    """Split a command; the value of ``-p`` or ``-l`` may contain blanks and ends at the next option."""
    for option in _VALUE_OPTIONS:
        head, matched, tail = command.partition(f" {option}")
        if matched:
            value, dashed, more = tail.partition(" -")
            return [*head.split(), option.strip(), value, *(f"-{more}".split() if dashed else [])]
    return command.split()


def _run(kubeconfig: Path, home_directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home_directory), "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        [found_program(), *words],
        cwd=FOLDER,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def _settled(printed: str) -> str:
    for pattern, word in _CHANGING:
        printed = pattern.sub(word, printed)
    return printed.rstrip("\n")


def _read(text: str) -> Iterator[Command]:
    for block in text.split(f"\n{_PROMPT}"):
        command, _, rest = block.removeprefix(_PROMPT).partition("\n")
        printed, _, code = rest.rstrip("\n").rpartition(_CODE)
        yield Command(command, printed.rstrip("\n"), int(code))


def _write(command: Command) -> str:
    printed = f"{command.printed}\n" if command.printed else ""
    return f"{_PROMPT}{command.command}\n{printed}{_CODE}{command.code}\n"


def main(kubeconfig: str) -> None:
    """Record the session on the cluster of a kubeconfig."""
    home_directory = FOLDER.parent / "home"
    home_directory.mkdir()
    try:
        _REAL.write_text("".join(_write(command) for command in played(Path(kubeconfig), home_directory)))
    finally:
        shutil.rmtree(home_directory)


if __name__ == "__main__":
    main(sys.argv[1])
