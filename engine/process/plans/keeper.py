"""The process of the plans: it keeps the engine as of a sequence number, and forks itself for each question.

It only reads the log. Between questions it has no event loop and no other thread, so that forking is safe.
"""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec

from engine import diagnostics
from engine.log import port
from engine.plans import planning
from engine.plans.fork import Fork
from engine.plans.predictions import Prediction
from engine.plans.questions import PlanError
from engine.plans.recorded_shards import RecordedShards
from engine.process import interpreter_settings, log_locations
from engine.process.plans import protocol
from engine.simulation import specs

_NICE: Final = 10
"""Nice value of the plans' processes: the live engine has priority when processors are short."""

_MEMORY_BYTES_MAX: Final = 8 << 30
_PROGRESS_S: Final = 0.2
_log: Final = diagnostics.logger("plans")


def main() -> None:
    """Answer questions, whose sockets arrive at standard input, until the input ends or the idle time is over.

    The process has one argument: the maximum idle time in seconds.
    """
    idle_s = float(sys.argv[1])
    os.nice(_NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, hard))
    interpreter_settings.tune()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes child processes when they end
    kept = _EngineCopy()
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as control:
        os.close(sys.stdin.fileno())
        control.settimeout(idle_s)
        while (connection := _next(control)) is not None:
            with connection, suppress(EOFError, OSError):
                _answer(control, connection, kept)


class _EngineCopy:
    """The engine as of a sequence number of the log, with its simulated members."""

    def __init__(self) -> None:
        self._key: tuple[int, tuple[specs.MemberSpec, ...]] | None = None
        self._fork: Fork | None = None

    async def prepare(self, request: protocol.Request) -> Fork:
        """Return the engine for a question; raises the log's errors.

        For a number later than that of the last question, advance its engine; for an earlier number, build a new one.
        """
        basis, question = request.location, request.question
        async with log_locations.snapshots(basis) as snapshots, log_locations.opened(basis) as log:
            end = log.last_number()
            number = end if question.number is None else min(question.number, end)
            if self._fork is None or self._key != (number, question.simulated):
                shards = None if self._key is None or number < self._key[0] else self._shards()
                self._key = self._fork = None
                gc.collect()  # free the old engine first: two engines would need twice the memory
                shards = shards or RecordedShards(snapshots)
                self._fork = await planning.prepare(log, question, shards)
                self._key = number, question.simulated
            return self._fork

    def _shards(self) -> RecordedShards | None:
        return None if self._fork is None else self._fork.shards


def _next(control: socket.socket) -> socket.socket | None:
    """Return the socket of the next question; None if none has come within the idle time, or the parent has ended."""
    try:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    except TimeoutError:
        return None
    return socket.socket(fileno=descriptors[0]) if descriptors else None


def _answer(control: socket.socket, connection: socket.socket, kept: _EngineCopy) -> None:
    """Prepare the engine for a question, and answer it in a forked process."""
    request = protocol.receive(connection)
    try:
        fork = asyncio.run(kept.prepare(request))
    except (port.LogError, PlanError, MemoryError) as error:
        _send(connection, _failure(error))
        return
    if os.fork():
        return
    try:
        # Close the inherited socket: while it is open, the parent cannot notice that the keeper has ended.
        control.close()
        gc.freeze()
        with _unchanged(connection, fork, request) as baseline:
            threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
            _predict(connection, fork, request, baseline)
    except OSError:
        pass  # the parent no longer listens
    except Exception:  # noqa: BLE001  # the end of the connection shows it to the parent
        _log.exception("plan failed")
    finally:
        os._exit(0)


def _unchanged(connection: socket.socket, fork: Fork, request: protocol.Request) -> socket.socket:
    """Fork a process that predicts what happens without the change; return the socket to it.

    Fork it before predicting the change, which modifies the engine. The process begins when a byte arrives on the
    socket, and ends when the socket is closed.
    """
    own_end, child_end = socket.socketpair()
    if os.fork():
        child_end.close()
        return own_end
    connection.close()
    own_end.close()
    if child_end.recv(1):
        threading.Thread(target=_end_with, args=(child_end,), daemon=True).start()
        question = planning.without_change(request.question)
        _answer_with(child_end, fork, request, lambda: planning.outcome(fork, question))
    os._exit(0)


def _end_with(connection: socket.socket) -> None:
    """End this process when the parent closes the connection."""
    with suppress(OSError):
        connection.recv(1)
    os._exit(0)


def _predict(
    connection: socket.socket, fork: Fork, request: protocol.Request, baseline: socket.socket
) -> None:
    async def unchanged() -> Prediction:
        reader, writer = await asyncio.open_unix_connection(sock=baseline, limit=protocol.READ_BYTES)
        writer.write(b"?")
        return msgspec.json.decode(await protocol.answer(reader, lambda _: None), type=Prediction)

    progress = _progress(connection)
    _answer_with(
        connection, fork, request, lambda: planning.predict_on(fork, request.question, unchanged, progress)
    )


def _answer_with(
    connection: socket.socket,
    fork: Fork,
    request: protocol.Request,
    predict: Callable[[], Awaitable[Prediction]],
) -> None:
    """Send the result of ``predict``, or the reason why it failed; the engine ``fork`` reads the log of the request."""

    async def predicted() -> bytes:
        async with log_locations.opened(request.location) as log:
            fork.log.base = log
            return msgspec.json.encode(await predict())

    try:
        answer = asyncio.run(predicted())
    except (port.LogError, PlanError, MemoryError) as error:
        answer = _failure(error)
    _send(connection, answer)


def _failure(error: Exception) -> bytes:
    reason = str(error)
    if isinstance(error, MemoryError):
        reason = f"the plan needs more than {_MEMORY_BYTES_MAX >> 30} GiB of memory"
    return protocol.FAILED + reason.encode()


def _progress(connection: socket.socket) -> Callable[[int], None]:
    """Return a function that sends the virtual time that has passed in milliseconds, at most a few times a second."""
    last_s = 0.0

    def send(passed_ms: int) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _PROGRESS_S:
            last_s = time.monotonic()
            _send(connection, b"%d" % passed_ms)

    return send


def _send(connection: socket.socket, line: bytes) -> None:
    connection.sendall(line + b"\n")
