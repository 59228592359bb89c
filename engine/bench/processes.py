"""Memory and processor time of processes, from /proc."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_SAMPLE_S: Final = 0.2


def resident_mb() -> float:
    """Resident memory in MiB of this process and its children; 0 without /proc."""
    return resident_of(*tree(os.getpid()))


def resident_of(*pids: int) -> float:
    """Resident memory of processes in MiB, without those that do not exist."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def proportional_mb(pid: int) -> float:
    """Resident memory of a process in MiB, with its share of pages that processes share; 0 if it does not exist."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


@asynccontextmanager
async def peak_mb(pids: Callable[[], Iterable[int]]) -> AsyncGenerator[list[float]]:
    """Yield a list with one value: the highest sum of ``proportional_mb`` of the processes during the block."""
    peak = [0.0]

    async def sample() -> None:
        while True:
            peak[0] = max(peak[0], sum(map(proportional_mb, pids())))
            await asyncio.sleep(_SAMPLE_S)

    sampling = asyncio.create_task(sample())
    try:
        yield peak
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)


def children(pid: int) -> list[int]:
    """Running child processes of a process; empty without /proc."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [
            int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()
        ]
    except FileNotFoundError:
        return []


def tree(pid: int) -> list[int]:
    """A process and its running child processes."""
    return [pid, *children(pid)]


def cpu_s(*pids: int) -> float:
    """Processor seconds of processes, without those that do not exist."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            # The command name may contain spaces and parentheses; skip to after the last one.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            # The times in user mode and in the kernel.
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
