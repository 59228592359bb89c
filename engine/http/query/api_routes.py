"""Routes below ``/api/v1`` as the OpenAPI document describes them, their parameters and bodies."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http import incoming_requests
from engine.http.errors import RefusalError
from engine.http.query import parameters
from events.json_values import DECODING_ERRORS
from events.limits import shortened

PREFIX: Final = "/api/v1"
_SEE: Final = "see /openapi.json"
_AT: Final = " - at `$."
_WORD: Final = re.compile(r"\w+")
_Query = TypeVar("_Query", bound=parameters.Query)
_Body = TypeVar("_Body")


class ApiRoute(Struct, frozen=True, kw_only=True):
    """A route; ``path`` is below ``PREFIX``.

    ``gives`` is the type of the response (of its items if ``is_list``, of each line if ``is_feed``), None if it has no
    body. ``refusals`` are the error statuses of this route, in addition to those that every route has.
    """

    method: Literal["GET", "POST", "DELETE"] = "GET"
    path: str
    summary: str
    gives: type | None
    query: type[parameters.Query] = parameters.Query
    request: type[Struct] | None = None
    operation: str = ""
    status: int = 200
    refusals: tuple[int, ...]
    is_list: bool = False
    is_feed: bool = False

    @property
    def operation_id(self) -> str:
        """The id in the OpenAPI document; unless ``operation`` sets it, method and path: ``getClustersName``."""
        words = "".join(word.capitalize() for word in _WORD.findall(self.path))
        return self.operation or self.method.lower() + words


def feed_route(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    """Return the route of a feed; ``path`` is below ``PREFIX``. It refuses HEAD, which Starlette adds to GET."""
    route = Route(PREFIX + path, answer, methods=["GET"])
    route.methods = {"GET"}
    return route


def read_query(request: Request, shape: type[_Query]) -> _Query:
    """Parse the query string; raises RefusalError for unknown or invalid parameters."""
    known = shape.__struct_encode_fields__
    for name in request.query_params:
        if name not in known:
            remedy = f"use one of {', '.join(sorted(known))}" if known else "this query has no parameters"
            raise RefusalError(400, shortened(name), "unknown parameter", remedy)
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        # The message names the parameter at its end: "Expected `int` >= 1 - at `$.limit`".
        reason, _, name = str(error).partition(_AT)
        raise RefusalError(400, name.rstrip("`") or "query", reason, _SEE) from None


async def read_body(
    request: Request, shape: type[_Body], bytes_max: int, smaller: str, correct: str = _SEE
) -> _Body:
    """Parse the body; raises RefusalError with the remedy ``smaller`` if it is too large, ``correct`` if malformed."""
    try:
        return msgspec.json.decode(await incoming_requests.read_body(request, bytes_max), type=shape)
    except incoming_requests.TooLargeError as error:
        raise RefusalError(413, "body", str(error), smaller) from None
    except DECODING_ERRORS as error:
        raise RefusalError(400, "body", str(error) or "nested too deeply", correct) from None


def answer(body: Struct, status: int = 200) -> Response:
    """Return a response in JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")
