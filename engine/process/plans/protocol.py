"""Encoding of a question and of its answer; the docstring of the package describes the protocol."""

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
READ_BYTES: Final = 1 << 20


class Request(Struct, frozen=True, kw_only=True):
    """A question about the log at a location."""

    location: LogLocation
    question: Question


def encoded(request: Request) -> bytes:
    return msgspec.json.encode(request) + b"\n"


def receive(connection: socket.socket) -> Request:
    """Read a question; raises EOFError if the connection ends before it is complete."""
    with connection.makefile("rb") as stream:
        line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return msgspec.json.decode(line, type=Request)


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
