"""The child: answer one question from the log, which it only reads."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Final

import msgspec

from engine.log import port
from engine.plans import planning
from engine.plans.fork import PlanError
from engine.plans.predictions import Prediction
from engine.process import interpreter_settings, log_places
from engine.process.plans import protocol

_NICE: Final = 10
"""The live engine comes first when processors are short."""

_MEMORY_BYTES_MAX: Final = 8 << 30
_PROGRESS_S: Final = 0.2


def main() -> None:
    """Answer the question on standard input."""
    os.nice(_NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, hard))
    interpreter_settings.tune()
    ask = msgspec.json.decode(sys.stdin.buffer.read(), type=protocol.Ask)
    try:
        prediction = asyncio.run(_predict(ask, _progress()))
    except (port.LogError, PlanError) as error:
        _write(protocol.FAILED + str(error).encode())
    except MemoryError:
        _write(protocol.FAILED + b"it needs more than %d GiB of memory" % (_MEMORY_BYTES_MAX >> 30))
    else:
        _write(msgspec.json.encode(prediction))


async def _predict(ask: protocol.Ask, progress: Callable[[int], None]) -> Prediction:
    place = (
        log_places.LogPlace(ask.directory) if ask.where is None else log_places.LogPlace(address=ask.where)
    )
    async with log_places.snapshots(place) as snapshots, log_places.opened(place) as log:
        return await planning.predict(log, ask.question, snapshots, progress)


def _progress() -> Callable[[int], None]:
    """Return a function that writes the virtual time that has passed, a few times a second."""
    last_s = 0.0

    def write(passed_ms: int) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _PROGRESS_S:
            last_s = time.monotonic()
            _write(b"%d" % passed_ms)

    return write


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
