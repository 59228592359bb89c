"""How much memory processes hold, and how much of a processor they have used."""

import os
from pathlib import Path
from typing import Final

_SELF: Final = Path("/proc/self")
_USER: Final = 11
_SYSTEM: Final = 12
"""Fields of /proc/PID/stat behind the name."""


def resident_mb() -> float:
    """Resident memory in MiB, children included; 0 where the system does not tell."""
    if not _SELF.exists():
        return 0.0
    pids = ["self"]
    for task in (_SELF / "task").iterdir():
        pids += (task / "children").read_text(encoding="ascii").split()
    return sum(resident_of(pid) for pid in pids)


def resident_of(pid: int | str) -> float:
    """Resident memory of one process in MiB; 0 where there is none such."""
    return _pages(str(pid)) * os.sysconf("SC_PAGE_SIZE") / 2**20


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run; none where the system does not tell."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [
            int(each) for task in tasks for each in (task / "children").read_text(encoding="ascii").split()
        ]
    except FileNotFoundError:
        return []


def cpu_s(pid: int) -> float:
    """Seconds of processor time that a process has used; 0 where there is none such."""
    try:
        # The name may hold spaces; what follows it does not.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


def _pages(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return 0
