"""Refusals over HTTP: one form for all, ``{"error": {"field", "reason", "remedy"}}``."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from starlette.responses import Response


class Problem(Struct, frozen=True):
    """What is wrong, where, and what to do about it."""

    field: str
    reason: str
    remedy: str


class Refused(Struct, frozen=True):
    """The body of every answer whose status is 400 or above."""

    error: Problem


class RefusalError(Exception):
    """A request that can't be answered; it becomes the answer."""

    def __init__(self, status: int, field: str, reason: str, remedy: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.status = status
        self.problem = Problem(field, reason, remedy)

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        """The answer."""
        body = msgspec.json.encode(Refused(self.problem))
        return Response(body, self.status, headers=headers, media_type="application/json")
