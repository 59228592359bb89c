"""Routes of the queries: GET under ``/api/v1``, JSON in the response."""

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.query import response_types
from engine.http.query.api_routes import PREFIX, read_query
from engine.http.query.queries import QUERIES, QueryRequest, QueryRoute
from engine.http.query.view_reads import Reader
from engine.http.services import Services


def routes(services: Services) -> list[Route]:
    reader = Reader(services, services.as_of_views)
    return [_route(query_route, services, reader) for query_route in QUERIES]


def _route(query_route: QueryRoute, services: Services, reader: Reader) -> Route:
    async def answer(request: Request) -> Response:
        query = read_query(request, query_route.query)
        named = next(iter(request.path_params.values()), "")
        result = await query_route.answer(QueryRequest(query, str(named), services, services.inquiry, reader))
        body = await anyio.to_thread.run_sync(response_types.encode, result)
        return Response(body, media_type="application/json")

    return Route(PREFIX + query_route.path, answer, methods=["GET"])
