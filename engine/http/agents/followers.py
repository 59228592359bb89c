"""Responses that stream works to agents, counted to limit their number."""

from collections.abc import AsyncGenerator
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

NDJSON: Final = "application/x-ndjson"


class WorksFeed(StreamingResponse):
    """A feed of works: one of the ``followers`` from its creation on, before its stream starts, until it ends."""

    def __init__(self, lines: AsyncGenerator[bytes], followers: set[Response]) -> None:
        super().__init__(lines, media_type=NDJSON)
        self._followers = followers
        followers.add(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._followers.discard(self)
