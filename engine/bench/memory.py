"""How much memory this process and its children hold."""

import os
from pathlib import Path

_SELF = Path("/proc/self")


def resident_mb() -> float:
    """Resident memory in MiB, children included; 0 where the system does not tell."""
    if not _SELF.exists():
        return 0.0
    pids = ["self"]
    for task in (_SELF / "task").iterdir():
        pids += (task / "children").read_text(encoding="ascii").split()
    return sum(of(pid) for pid in pids)


def of(pid: int | str) -> float:
    """Resident memory of one process in MiB; 0 where there is none such."""
    return _pages(str(pid)) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _pages(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return 0
