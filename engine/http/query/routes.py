"""Routes of the queries: GET under ``/api/v1``, JSON in the response."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.errors import RefusalError
from engine.http.query import parameters, response_types
from engine.http.query.queries import QUESTIONS, QueryRequest, Question
from engine.http.query.view_reads import Reader
from engine.http.services import Services

PREFIX: Final = "/api/v1"
_Query = TypeVar("_Query", bound=parameters.Query)


def routes(services: Services) -> list[Route]:
    reader = Reader(services)
    return [_route(question, services, reader) for question in QUESTIONS]


def feed_route(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    """Return the route of a feed; ``path`` is below ``PREFIX``. It refuses HEAD, which Starlette adds to GET."""
    route = Route(PREFIX + path, answer, methods=["GET"])
    route.methods = {"GET"}
    return route


def read_query(request: Request, shape: type[_Query]) -> _Query:
    """Parse the query string; raises RefusalError for unknown or invalid parameters."""
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        raise RefusalError(400, "query", str(error), "see /openapi.json") from None


def _route(question: Question, services: Services, reader: Reader) -> Route:
    async def answer(request: Request) -> Response:
        query = read_query(request, question.query)
        named = next(iter(request.path_params.values()), "")
        result = await question.answer(QueryRequest(query, str(named), services, reader))
        body = await anyio.to_thread.run_sync(response_types.encode, result)
        return Response(body, media_type="application/json")

    return Route(PREFIX + question.path, answer, methods=["GET"])
