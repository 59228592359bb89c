"""A connection that breaks raises the Kafka library's error on every event loop, uvloop included."""

import asyncio
import socket
import struct

import pytest
import uvloop

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
from aiokafka import conn
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import ApiVersionRequest

from events.client import broken_connections

TURNS = 1_000
REQUEST = struct.Struct(">ihhi")
ANSWER = struct.Struct(">iihi")


async def answer_once_and_reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the version request with an empty list, and reset the connection at the next request."""
    _, _, _, number = REQUEST.unpack(await reader.readexactly(REQUEST.size))
    writer.write(ANSWER.pack(ANSWER.size - 4, number, 0, 0))
    await reader.readexactly(1)
    await reader.read(1)
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def send_until_broken() -> None:
    async with await asyncio.start_server(answer_once_and_reset, "127.0.0.1", 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        connection = await conn.create_conn("127.0.0.1", port, request_timeout_ms=5_000)
        answers = [asyncio.ensure_future(connection.send(ApiVersionRequest()))]
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
                answers.append(asyncio.ensure_future(connection.send(ApiVersionRequest())))
        finally:
            errors = await asyncio.gather(*answers, return_exceptions=True)
            assert not connection.connected()
            assert {type(error) for error in errors} == {KafkaConnectionError}


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_broken_connection_raises_the_error_of_the_library(factory: type[asyncio.AbstractEventLoop]) -> None:
    broken_connections.install()
    with asyncio.Runner(loop_factory=factory) as runner, pytest.raises(KafkaConnectionError):
        runner.run(send_until_broken())
