"""The queries: path, parameters, response type and implementation of each.

The routes (GET under ``/api/v1``), the OpenAPI document and the tests are generated from the table ``QUERIES``.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.errors import RefusalError
from engine.http.query import parameters, record_pages, response_types, shard_lag
from engine.http.query.api_routes import PREFIX, ApiRoute, read_query
from engine.http.query.view_reads import Reader
from engine.http.services import Inquiry, Services
from engine.writing.read_side import ReadSide
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections import query
from projections.port import Rows

_Item = TypeVar("_Item")
_Options = TypeVar("_Options", bound=parameters.Query)
_OfPage = TypeVar("_OfPage", bound=parameters.PageQuery)


class QueryRequest(Struct, Generic[_Options], frozen=True):
    """One request: its query parameters, its path parameter (``named``), and access to the log and the views."""

    options: _Options
    named: str
    reads: ReadSide
    inquiry: Inquiry
    reader: Reader


class QueryRoute(ApiRoute, frozen=True, kw_only=True):
    """One query, and the function that answers it."""

    answer: Callable[[QueryRequest[Any]], Awaitable[object]]


def routes(services: Services) -> list[Route]:
    reader = Reader(services, services.as_of_views)
    return [_route(query_route, services, reader) for query_route in QUERIES]


def _route(query_route: QueryRoute, services: Services, reader: Reader) -> Route:
    async def answer(request: Request) -> Response:
        options = read_query(request, query_route.query)
        named = next(iter(request.path_params.values()), "")
        result = await query_route.answer(
            QueryRequest(options, str(named), services, services.inquiry, reader)
        )
        body = await anyio.to_thread.run_sync(response_types.encode, result)
        return Response(body, media_type="application/json")

    return Route(PREFIX + query_route.path, answer, methods=["GET"])


async def _bindings(request: QueryRequest[parameters.BindingsQuery]) -> response_types.Listing:
    return await _object_page(request, partial(query.list_bindings, filters=request.options.filter))


async def _objects(request: QueryRequest[parameters.ObjectsQuery]) -> response_types.Listing:
    options = request.options
    selection = query.Filter(
        kind=parameters.kind_of(options.kind),
        api_version=options.api_version,
        namespace=options.namespace,
        name=options.name,
        labels=parameters.label_test(options.label_selector),
    )
    if selection.kind == "Cluster" and selection.api_version in ("", kinds.CLUSTER_GROUP):
        return await _object_page(request, partial(query.list_clusters, filters=selection))
    return await _object_page(request, partial(query.list_objects, filters=selection))


async def _clusters(request: QueryRequest[parameters.ClustersQuery]) -> response_types.Listing:
    selection = query.Filter(labels=parameters.label_test(request.options.label_selector))
    return await _object_page(request, partial(query.list_clusters, filters=selection))


async def _rebalancers(request: QueryRequest[parameters.PageQuery]) -> response_types.Listing:
    return await _object_page(request, query.list_rebalancers)


async def _works(request: QueryRequest[parameters.WorksQuery]) -> response_types.Listing:
    options = request.options
    page = await _page(request, partial(query.list_works, cluster=options.cluster, key=options.key))
    return response_types.Listing(items=msgspec.to_builtins(page.items), continue_=page.after)


async def _rejections(request: QueryRequest[parameters.PageQuery]) -> response_types.Listing:
    page = await _page(request, query.list_rejections)
    return response_types.Listing(items=msgspec.to_builtins(page.items), continue_=page.after)


async def _object_page(
    request: QueryRequest[_OfPage], list_page: Callable[..., query.Objects]
) -> response_types.Listing:
    page = await _page(request, list_page)
    return response_types.Listing(items=[item.document for item in page.items], continue_=page.after)


async def _page(
    request: QueryRequest[_OfPage], list_page: Callable[..., query.Page[_Item]]
) -> query.Page[_Item]:
    options = request.options
    number = await request.reader.resolve(options.as_of)
    return await request.reader.page(number, list_page, options.limit, options.continue_)


def _find_by_name(
    find: Callable[[Rows, str], KubeObject | None], kind: str
) -> Callable[[QueryRequest[parameters.ObjectQuery]], Awaitable[Json]]:
    async def answer(request: QueryRequest[parameters.ObjectQuery]) -> Json:
        number = await request.reader.resolve(request.options.as_of)
        value = await request.reader.read(number, lambda rows: find(rows, request.named))
        if value is None:
            raise RefusalError(
                404, "name", f"{kind} {request.named[:300]!r} not found", "list the existing ones"
            )
        return value.document

    return answer


async def _timeline(request: QueryRequest[parameters.TimelineQuery]) -> response_types.Entries:
    number = await request.reader.resolve(request.options.as_of)
    limit, after = request.options.limit, request.options.after
    read_numbers = partial(query.timeline, key=request.named, limit=limit, after=after)
    # A timeline only grows, so its state at an earlier number is a prefix of the current one.
    numbers = await request.reader.read(None, read_numbers)
    shown = [entry_number for entry_number in numbers if number is None or entry_number <= number]
    return await record_pages.numbered(request.reads.log, shown, is_full=len(shown) == limit)


async def _log(request: QueryRequest[parameters.LogQuery]) -> response_types.Entries:
    return await record_pages.behind(request.reads.log, request.options)


async def _lag(request: QueryRequest[parameters.Query]) -> response_types.Lag:
    # Do not query the brokers for the end of the log: the lag must be available while they are down.
    await request.reads.views.wait_folded(request.reads.log.last_number())
    steps = await request.reads.peek(query.shard_steps)
    return shard_lag.lag(request.reads.log, request.reads.views.folded, steps)


async def _counts(request: QueryRequest[parameters.ObjectQuery]) -> response_types.Counts:
    number = await request.reader.resolve(request.options.as_of)
    return response_types.Counts(counts=await request.reader.read(number, query.counts))


async def _instant(request: QueryRequest[parameters.ObjectQuery]) -> response_types.Moment:
    number = await request.reader.resolve(request.options.as_of)
    shown = request.reads.log.last_number() if number is None else number
    record = await record_pages.newest(request.reads.log, shown)
    return response_types.Moment(number=shown, time="" if record is None else record.time)


async def _explain(request: QueryRequest[parameters.ObjectQuery]) -> Struct:
    number = await request.reader.resolve(request.options.as_of)
    explanation = await request.inquiry.explain(request.named, number)
    if explanation is None:
        remedy = "check the key: list the bindings or the rejections"
        raise RefusalError(404, "key", f"no decision for {request.named[:300]!r}", remedy)
    return explanation


async def _verify(request: QueryRequest[parameters.VerifyQuery]) -> Struct:
    return await request.inquiry.verify(views=request.options.views)


def _query(
    path: str,
    summary: str,
    takes: type[_Options],
    gives: type,
    answer: Callable[[QueryRequest[_Options]], Awaitable[object]],
) -> QueryRoute:
    refusals = (400, 404) if "{" in path else (400,)
    return QueryRoute(path=path, summary=summary, query=takes, gives=gives, refusals=refusals, answer=answer)


_LIST, _ENTRIES, _ANY = response_types.Listing, response_types.Entries, response_types.Anything
_get_binding = _find_by_name(query.get_binding, "the binding")
_get_cluster = _find_by_name(query.get_cluster, "the cluster")
_get_rebalancer = _find_by_name(query.get_rebalancer, "the rebalancer")

QUERIES: Final[tuple[QueryRoute, ...]] = (
    _query("/bindings", "List bindings by page.", parameters.BindingsQuery, _LIST, _bindings),
    _query("/bindings/{key:path}", "A binding.", parameters.ObjectQuery, _ANY, _get_binding),
    _query("/rebalancers", "List rebalancers by page.", parameters.PageQuery, _LIST, _rebalancers),
    _query(
        "/rebalancers/{name}",
        "A rebalancer and the result of each of its workloads.",
        parameters.ObjectQuery,
        _ANY,
        _get_rebalancer,
    ),
    _query("/clusters", "List clusters by page.", parameters.ClustersQuery, _LIST, _clusters),
    _query("/clusters/{name}", "A cluster.", parameters.ObjectQuery, _ANY, _get_cluster),
    _query("/objects", "List objects of any kind by page.", parameters.ObjectsQuery, _LIST, _objects),
    _query("/works", "List works: the workloads assigned to clusters.", parameters.WorksQuery, _LIST, _works),
    _query("/timeline/{key:path}", "All records about a key.", parameters.TimelineQuery, _ENTRIES, _timeline),
    _query(
        "/rejections", "List rejected inputs, with the reasons.", parameters.PageQuery, _LIST, _rejections
    ),
    _query(
        "/lag",
        "How far projections and shards are behind the log.",
        parameters.Query,
        response_types.Lag,
        _lag,
    ),
    _query(
        "/counts",
        "Numbers of records by type, verdict, trigger and failure.",
        parameters.ObjectQuery,
        response_types.Counts,
        _counts,
    ),
    _query(
        "/moment",
        "The last record at a number, position or instant.",
        parameters.ObjectQuery,
        response_types.Moment,
        _instant,
    ),
    _query("/log", "The records of the log.", parameters.LogQuery, _ENTRIES, _log),
    _query(
        "/explain/{key:path}",
        "Explain the scheduling decision of a binding.",
        parameters.ObjectQuery,
        _ANY,
        _explain,
    ),
    _query("/verify", "Verify the log by computing every step again.", parameters.VerifyQuery, _ANY, _verify),
)
"""All queries; each is a GET under ``/api/v1``."""
