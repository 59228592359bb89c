"""A minimal HTTP/1.1 client over TLS, so that the client takes little of the measured time; bodies are bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from typing import Final, Self
from urllib.parse import urlsplit

_LIMIT: Final = 1 << 26
_LENGTH: Final = b"content-length: "
_END: Final = b"\r\n\r\n"


class BenchError(Exception):
    """Unexpected response; the message is its beginning."""


class Connection:
    """One connection, with one request at a time; create it with ``open``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    @classmethod
    async def open(cls, url: str, token: str, secured: ssl.SSLContext) -> Self:
        """Connect to a server."""
        host, port = urlsplit(url).hostname or "", urlsplit(url).port
        reader, writer = await asyncio.open_connection(host, port, ssl=secured, limit=_LIMIT)
        return cls(
            reader, writer, f"host: {host}\r\nauthorization: Bearer {token}\r\naccept: application/json\r\n"
        )

    async def post(self, path: str, body: bytes) -> bytes:
        """The response body of a POST; raises BenchError unless the status is 201."""
        head = f"POST {path} HTTP/1.1\r\n{self._head}content-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        return await self._answer(b" 201 ")

    async def get(self, path: str) -> bytes:
        """The response body of a GET; raises BenchError unless the status is 200."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        return await self._answer(b" 200 ")

    async def lines(self, path: str) -> AsyncGenerator[bytes]:
        """The lines of a watch; the connection can't be used for other requests afterwards."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        _check(await self._reader.readuntil(_END), b" 200 ")
        rest = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            *whole, rest = (rest + (await self._reader.readexactly(size + 2))[:-2]).split(b"\n")
            for line in whole:
                yield line

    def close(self) -> None:
        self._writer.transport.abort()

    async def _answer(self, status: bytes) -> bytes:
        head = await self._reader.readuntil(_END)
        start = head.find(_LENGTH) + len(_LENGTH)
        body = await self._reader.readexactly(int(head[start : head.find(b"\r", start)]))
        _check(head + body, status)
        return body


def _check(answer: bytes, status: bytes) -> None:
    if status not in answer[: answer.find(b"\r")]:
        raise BenchError(answer[:1_000].decode(errors="replace"))
