"""Server processes of benchmarks; memory and processor time of processes, from /proc."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from engine.identity.endpoint import FILE, Endpoint

_SAMPLE_S: Final = 0.2
_READY_S: Final = 120
_POLL_S: Final = 0.02


@contextmanager
def serving(directory: Path, *arguments: str) -> Generator[tuple[int, Endpoint]]:
    """Run ``python -m`` with these arguments until the block ends; yield its process id and its endpoint.

    The process writes the endpoint file to ``directory``. Raises RuntimeError if it ends before that.
    """
    with subprocess.Popen[bytes](  # runs only modules of this project
        [sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until_s = time.monotonic() + _READY_S
            while not (directory / FILE).exists():
                if process.poll() is not None or time.monotonic() > until_s:
                    raise RuntimeError(f"{' '.join(arguments)} did not start")
                time.sleep(_POLL_S)
            yield process.pid, msgspec.json.decode((directory / FILE).read_bytes(), type=Endpoint)
        finally:
            process.terminate()


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
    """Memory of a process in MiB: resident pages, of a page that n processes share 1/n (PSS); 0 without the process."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


@asynccontextmanager
async def peak_mb(pids: Callable[[], Iterable[int]]) -> AsyncGenerator[list[float]]:
    """Sample the processes during the block; yield a list whose only item is their highest memory so far, in MiB."""
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
