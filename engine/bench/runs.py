"""Figures, progress and the temporary directory of a benchmark."""

import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from engine.log import port, reading
from events import codec

WAIT_S: Final = 600
"""Seconds to wait for an effect before the benchmark fails."""

Figures: TypeAlias = dict[str, float | str | Mapping[str, float] | None]
"""Figures by name. ``baseline`` is a text about the baseline; ``reference`` has Karmada's figures by name."""

Progress = Callable[[str], None]


def delays(prefix: str, spans_s: Iterable[float]) -> dict[str, float]:
    """The median and the 99th percentile of spans, in milliseconds."""
    ordered = sorted(spans_s)
    return {
        f"{prefix}p50_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
        f"{prefix}p99_ms": round(ordered[len(ordered) * 99 // 100] * 1e3, 2),
    }


async def decode(log: port.NumberedLog) -> None:
    """Read and decode all records of a log: the baseline of benchmarks that read logs."""
    async for record in reading.of_all(log):
        codec.decode(record)


@contextmanager
def directory() -> Generator[Path]:
    """Make a directory, and remove it after the block."""
    with tempfile.TemporaryDirectory(prefix="reballast-bench-", ignore_cleanup_errors=True) as path:
        yield Path(path)
