"""The loop of tests with virtual time."""

import asyncio
import time

import anyio.to_thread
import pytest

from tests.relay import relayed

pytestmark = pytest.mark.virtual_time
HOUR_S = 3_600
SOON_S = 10
"""Real time that is more than any of these tests needs."""


async def test_timers_end_in_order_and_take_no_time() -> None:
    began_s, clock_s, ended = time.perf_counter(), time.monotonic(), list[int]()

    async def sleep(hours: int) -> None:
        await asyncio.sleep(hours * HOUR_S)
        ended.append(hours)

    await asyncio.gather(*(sleep(hours) for hours in (3, 1, 2)))
    assert ended == [1, 2, 3]
    assert time.perf_counter() - began_s < SOON_S
    assert 3 * HOUR_S <= time.monotonic() - clock_s < 3 * HOUR_S + SOON_S


async def test_clock_does_not_jump_while_a_thread_computes() -> None:
    async with asyncio.timeout(5):
        await asyncio.to_thread(time.sleep, 0.1)
    async with asyncio.timeout(5):
        await anyio.to_thread.run_sync(time.sleep, 0.1)


async def test_clock_does_not_jump_over_what_passes_between_sockets() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, relayed(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as relay:
        for _ in range(20):
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.url.rpartition(":")[2]))
                writer.write(b"x")
                assert await reader.read() == b"x"
                writer.close()
