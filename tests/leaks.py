"""Secrets in the logs of processes: all directories of a run are searched at its end.

The output file of a process that a test starts has a suffix in ``LOGS``, somewhere below the run's temporary
directory. The tokens are read from the directories of servers and agents.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

LOGS: Final = ("output", ".output", ".said", ".log")
"""Suffixes of files with the output of processes."""

_LOCALS: Final = "locals ─"
"""Marker of a traceback with local variables."""

_ALWAYS: Final = (
    r"(?i:bearer) [A-Za-z0-9_.~+/-]{16,}",
    r"[?&]token=[A-Za-z0-9_.~+/-]{8,}",
    "-----BEGIN[A-Z ]* PRIVATE KEY-----",
    _LOCALS,
)


def secrets(root: Path) -> set[str]:
    """Return the tokens of all servers and agents below a directory."""
    tokens = {path.read_text("ascii", errors="replace").strip() for path in root.rglob("server.token")}
    for path in (*root.rglob("endpoint.json"), *root.rglob("*agent.json")):
        with suppress(ValueError):
            tokens.add(str(json.loads(path.read_bytes()).get("token", "")))
    return tokens - {""}


def leaks(root: Path) -> list[str]:
    """Return each line of a log with a secret, with its position; the secret itself is masked."""
    patterns = [*map(re.escape, sorted(secrets(root))), *_ALWAYS]
    pattern = re.compile("|".join(patterns))
    return [f"{path}:{number}: {line}" for path in _logs(root) for number, line in _lines(path, pattern)]


def _logs(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.name.endswith(LOGS) and path.is_file())


def _lines(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    with path.open(errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                yield number, pattern.sub("[secret]", line).strip()[:300]
