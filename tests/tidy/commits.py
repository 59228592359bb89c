"""``python -m tests.tidy.commits``: check the subjects of all commits since the rule began.

Subjects are ``package: imperative summary`` in at most 72 characters. CI runs this.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from tests.tidy import trees

SINCE: Final = "2026-11-22T18:20:00Z"
"""When the rule began; a date holds in rebased histories too."""

CHARACTERS_MAX: Final = 72
_SUBJECT: Final = re.compile(r"[a-z][\w./-]*: [a-z0-9].*[^.]")


def faults(subjects: Iterator[str] | list[str]) -> list[str]:
    """Return the fault of each subject that breaks the rule."""
    broken: list[str] = []
    for subject in subjects:
        if len(subject) > CHARACTERS_MAX:
            broken.append(f"{len(subject)} characters, at most {CHARACTERS_MAX}: {subject}")
        elif not _SUBJECT.fullmatch(subject):
            broken.append(f"not of the form `package: imperative summary`: {subject}")
    return broken


def main() -> int:
    """Print the faults; return 1 if there are any."""
    command = ["git", "log", "--no-merges", "--format=%s", f"--since={SINCE}"]
    subjects = subprocess.run(command, cwd=trees.ROOT, capture_output=True, text=True, check=True).stdout
    broken = faults(subjects.splitlines())
    print("\n".join(broken) or "all subjects follow the rule")  # noqa: T201
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
