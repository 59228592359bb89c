"""Requests of the Kubernetes API benchmark: a minimal HTTP/1.1 client over TLS, bodies, parsing of responses.

Bodies are handled as bytes, so that the client takes little of the measured time.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from engine.text_lines import Lines

_LIMIT: Final = 1 << 26
_LENGTH: Final = b"content-length: "
_END: Final = b"\r\n\r\n"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
BINDINGS: Final = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings"
CREATING: Final = "?fieldManager=kubectl-create&fieldValidation=Strict"

_CLUSTERS: Final = b'"clusters":[{'
_NAMED: Final = re.compile(rb'"resource":\{[^{}]*"name":"([^"]+)"')
_STAMP: Final = re.compile(rb'"data":\{"began":"([\d.]+)"')


class BenchError(Exception):
    """A response has an unexpected status; the message is the beginning of the response."""


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
        lines = Lines()
        async for chunk in self._chunks():
            for line in lines.take(chunk):
                yield line

    def close(self) -> None:
        self._writer.transport.abort()

    async def _chunks(self) -> AsyncGenerator[bytes]:
        """The chunks of a response without a length, such as a watch or a large list."""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)

    async def _answer(self, status: bytes) -> bytes:
        head = await self._reader.readuntil(_END)
        start = head.find(_LENGTH)
        if start >= 0:
            start += len(_LENGTH)
            body = await self._reader.readexactly(int(head[start : head.find(b"\r", start)]))
        else:
            body = b"".join([chunk async for chunk in self._chunks()])
        _check(head + body, status)
        return body


def _check(answer: bytes, status: bytes) -> None:
    if status not in answer[: answer.find(b"\r")]:
        raise BenchError(answer[:1_000].decode(errors="replace"))


def deployment(called: str) -> bytes:
    """A Deployment as ``kubectl create`` sends it."""
    container: dict[str, object] = {"name": "nginx", "image": "nginx", "resources": {}}
    template: dict[str, object] = {
        "metadata": {"labels": {"app": called}, "creationTimestamp": None},
        "spec": {"containers": [container]},
    }
    return msgspec.json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": called, "creationTimestamp": None, "labels": {"app": called}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": called}},
                "template": template,
                "strategy": {},
            },
            "status": {},
        }
    )


def stamped(index: int, began_s: float) -> bytes:
    """A ConfigMap with the time of its creation."""
    metadata = {"name": f"told-{index}"}
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"began": f"{began_s:.6f}"},
    }
    return msgspec.json.encode(value)


def watch(path: str, version: str) -> str:
    """The path of a watch that begins after a resourceVersion."""
    return f"{path}?watch=true&resourceVersion={version}"


def version_of(listed: bytes) -> str:
    """The resourceVersion of a list."""
    document = msgspec.json.decode(listed, type=_List)
    return document.metadata.version


def decided(line: bytes) -> bytes:
    """The workload name of the binding in a watch line; empty if the binding has no clusters."""
    match = _NAMED.search(line) if _CLUSTERS in line else None
    return match[1] if match else b""


def stamp_of(line: bytes) -> float | None:
    """The creation time that ``stamped`` put into a ConfigMap in a watch line; None for other lines."""
    match = _STAMP.search(line)
    return float(match[1]) if match else None


class _Metadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")


class _List(msgspec.Struct):
    metadata: _Metadata
