"""Responses with lists of objects.

Large lists are encoded and sent in pieces: a single encoding or a single send would delay all other requests.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

import anyio.to_thread
from starlette.responses import Response

from engine.http.kube import rendering
from engine.http.kube.line_streams import SECONDS_MAX, Parts
from engine.http.kube.rendering import ObjectList
from engine.http.kube.requests import Form
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.tables.tables import Table
from events import records
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject

_PIECE_BYTES: Final = 1024 * 1024
_ENCODED_AT_ONCE: Final = 8
"""Number of items per encoding: few, because each may have 2 MiB."""


async def answer(
    resource: Resource, values: Sequence[KubeObject], form: Form, now_ms: int, metadata: ListMeta
) -> Response:
    """The response with a list of objects in the form that the client accepts (see ``rendering.many``)."""

    def begin() -> tuple[bytes, bytes | None, Iterator[bytes]]:
        pieces = encoded(rendering.many(resource, values, form, now_ms, metadata))
        return next(pieces), next(pieces, None), pieces

    first, second, others = await anyio.to_thread.run_sync(begin)
    if second is None:
        return Response(first, media_type=records.JSON)
    return Parts(_sent(first, second, others), SECONDS_MAX)


async def _sent(first: bytes, second: bytes, others: Iterator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    piece: bytes | None = second
    while piece is not None:
        yield piece
        piece = await anyio.to_thread.run_sync(next, others, None)


def encoded(body: Table | ObjectList) -> Iterator[bytes]:
    """Yield the JSON of a list in pieces of about 1 MiB, at least one."""
    name, entries = ("rows", body["rows"]) if "rows" in body else ("items", body["items"])
    # Split at the last occurrence of `"rows":[`: the descriptions of columns come first and may contain it too.
    before, opening, after = rendering.encode({**body, name: []}).rpartition(f'"{name}":['.encode())
    piece = bytearray(before + opening)
    for start in range(0, len(entries), _ENCODED_AT_ONCE):
        piece += b"," if start else b""
        piece += rendering.encode(entries[start : start + _ENCODED_AT_ONCE])[1:-1]
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + after
