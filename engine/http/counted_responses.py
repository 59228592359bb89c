"""Streaming responses that are counted while they are sent, to limit their number."""

from collections.abc import AsyncGenerator

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send


class CountedResponse(Response):
    """A response that adds itself to ``open_responses`` while it is sent.

    A subclass must name this class before the response class that sends the body.
    """

    open_responses: set[Response]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Count the response before the first await: otherwise requests that arrive together would exceed the limit.
        self.open_responses.add(self)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.open_responses.discard(self)


class CountedStream(CountedResponse, StreamingResponse):
    """A stream that is in ``open_responses`` while it is sent."""

    def __init__(self, parts: AsyncGenerator[bytes], media_type: str, open_responses: set[Response]) -> None:
        super().__init__(parts, media_type=media_type)
        self.open_responses = open_responses
