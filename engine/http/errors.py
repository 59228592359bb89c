"""Errors over HTTP, all in one form: ``{"error": {"field", "reason", "remedy"}}``."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from starlette.responses import Response


class Problem(Struct, frozen=True):
    """The offending field of the request, the reason, and what to do about it."""

    field: str
    reason: str
    remedy: str


class Refused(Struct, frozen=True):
    """The body of every response with a status of 400 or above."""

    error: Problem


class RefusalError(Exception):
    """A request that can't be answered; an error handler turns it into the response."""

    def __init__(self, status: int, field: str, reason: str, remedy: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.status = status
        self.problem = Problem(field, reason, remedy)

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        body = msgspec.json.encode(Refused(self.problem))
        return Response(body, self.status, headers=headers, media_type="application/json")
