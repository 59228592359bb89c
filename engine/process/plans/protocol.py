"""Encoding of a question and of its answer; the package describes the protocol."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from engine.plans.questions import PlanError, Question
from engine.process.log_locations import LogLocation
from engine.text_lines import Lines

FAILED: Final = b"failed "
MODULE: Final = "engine.process.plans"
_LENGTH_BYTES: Final = 8
READ_BYTES: Final = 1 << 20


class Request(Struct, frozen=True, kw_only=True):
    """A question about a log."""

    location: LogLocation
    question: Question


def encoded(request: Request) -> bytes:
    content = msgspec.json.encode(request)
    return len(content).to_bytes(_LENGTH_BYTES) + content


def receive(connection: socket.socket) -> Request:
    """Read a question; raises EOFError if the connection ends before it is complete."""
    length = int.from_bytes(_exactly(connection, _LENGTH_BYTES))
    return msgspec.json.decode(_exactly(connection, length), type=Request)


async def answer(reader: asyncio.StreamReader, progress: Callable[[int], None]) -> bytes:
    """Read the answer to a question; ``progress`` gets the virtual time that has passed, in milliseconds.

    Raises PlanError, and EOFError if the connection ends before the answer is complete.
    """
    lines = Lines()
    while data := await reader.read(READ_BYTES):
        for line in lines.take(data):
            if line.startswith(FAILED):
                raise PlanError(line.removeprefix(FAILED).decode())
            if line.isdigit():
                progress(int(line))
            else:
                return line
    raise EOFError


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        if not (more := connection.recv(min(length - len(content), READ_BYTES))):
            raise EOFError
        content += more
    return bytes(content)
