"""How much memory this process holds."""

import os
from pathlib import Path

_PAGES = Path("/proc/self/statm")


def resident_mb() -> float:
    """Resident memory in MiB; 0 where the system does not tell."""
    if not _PAGES.exists():
        return 0.0
    pages = int(_PAGES.read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
