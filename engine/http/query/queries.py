"""The queries: path, parameters, response type and implementation of each. No HTTP here.

The routes, the OpenAPI document and the tests are generated from the table ``QUESTIONS``.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from engine.http.errors import RefusalError
from engine.http.query import parameters, record_pages, response_types, shard_lag
from engine.http.query.view_reads import Reader
from engine.http.services import Services
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections import query
from projections.port import Rows

_Item = TypeVar("_Item")


class QueryRequest(Struct, frozen=True):
    """One request: its query parameters, its path parameter (``named``), and access to the log and the views."""

    query: Struct
    named: str
    services: Services
    reader: Reader


Answer = Callable[[QueryRequest], Awaitable[object]]


class Question(Struct, frozen=True, kw_only=True):
    """One query. ``path`` is below ``/api/v1``; ``gives`` is the type of the response."""

    path: str
    summary: str
    query: type[parameters.Query]
    gives: type
    answer: Answer


async def _bindings(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.BindingsQuery)  # noqa: S101  # QUESTIONS pairs query types and functions
    selection = query.Filter(
        kind=_kind(options.kind),
        namespace=options.namespace,
        name=options.name,
        cluster=options.cluster,
        labels=parameters.label_test(options.label_selector),
    )
    return await _object_page(request, options, partial(query.list_bindings, filters=selection))


async def _objects(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.ObjectsQuery)  # noqa: S101  # see QUESTIONS
    selection = query.Filter(
        kind=_kind(options.kind),
        api_version=options.api_version,
        namespace=options.namespace,
        name=options.name,
        labels=parameters.label_test(options.label_selector),
    )
    if selection.kind == "Cluster":
        return await _object_page(request, options, partial(query.list_clusters, filters=selection))
    return await _object_page(request, options, partial(query.list_objects, filters=selection))


async def _clusters(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.ClustersQuery)  # noqa: S101  # see QUESTIONS
    selection = query.Filter(labels=parameters.label_test(options.label_selector))
    return await _object_page(request, options, partial(query.list_clusters, filters=selection))


async def _rebalancers(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.PageQuery)  # noqa: S101  # see QUESTIONS
    return await _object_page(request, options, query.list_rebalancers)


async def _works(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.WorksQuery)  # noqa: S101  # see QUESTIONS
    page = await _page(request, options, partial(query.list_works, cluster=options.cluster, key=options.key))
    return response_types.Listing(items=msgspec.to_builtins(page.items), continue_=page.after)


async def _rejections(request: QueryRequest) -> response_types.Listing:
    options = request.query
    assert isinstance(options, parameters.PageQuery)  # noqa: S101  # see QUESTIONS
    page = await _page(request, options, query.list_rejections)
    return response_types.Listing(items=msgspec.to_builtins(page.items), continue_=page.after)


async def _object_page(
    request: QueryRequest, options: parameters.PageQuery, list_page: Callable[..., query.Objects]
) -> response_types.Listing:
    page = await _page(request, options, list_page)
    return response_types.Listing(items=[item.document for item in page.items], continue_=page.after)


async def _page(
    request: QueryRequest, options: parameters.PageQuery, list_page: Callable[..., query.Page[_Item]]
) -> query.Page[_Item]:
    number = await request.reader.resolve(options.as_of)

    def select(rows: Rows) -> query.Page[_Item]:
        return list_page(rows, limit=options.limit, after=options.continue_)

    try:
        return await request.reader.read(number, select)
    except ValueError as error:
        raise RefusalError(
            400, "continue", str(error), "use the value of continue in the previous page"
        ) from None


def _find_by_name(find: Callable[[Rows, str], KubeObject | None], kind: str) -> Answer:
    async def answer(request: QueryRequest) -> Json:
        options = request.query
        assert isinstance(options, parameters.ObjectQuery)  # noqa: S101  # see QUESTIONS
        number = await request.reader.resolve(options.as_of)
        value = await request.reader.read(number, lambda rows: find(rows, request.named))
        if value is None:
            raise RefusalError(
                404, "name", f"{kind} {request.named[:300]!r} not found", "list the existing ones"
            )
        return value.document

    return answer


async def _timeline(request: QueryRequest) -> response_types.Entries:
    options = request.query
    assert isinstance(options, parameters.TimelineQuery)  # noqa: S101  # see QUESTIONS
    number = await request.reader.resolve(options.as_of)
    read_numbers = partial(query.timeline, key=request.named, limit=options.limit, after=options.after)
    # A timeline only grows, so its state at an earlier number is a prefix of the current one.
    numbers = await request.reader.read(None, read_numbers)
    shown = [entry_number for entry_number in numbers if number is None or entry_number <= number]
    is_full = len(shown) == options.limit
    return await record_pages.numbered(request.services.log, shown, is_full=is_full)


async def _log(request: QueryRequest) -> response_types.Entries:
    options = request.query
    assert isinstance(options, parameters.LogQuery)  # noqa: S101  # see QUESTIONS
    return await record_pages.behind(request.services.log, options)


async def _lag(request: QueryRequest) -> response_types.Lag:
    # Do not query the brokers for the end of the log: the lag must be available while they are down.
    await request.services.views.wait_folded(request.services.log.last_number())
    steps = await request.reader.peek(query.shard_steps)
    return shard_lag.lag(request.services.log, request.services.views.folded, steps)


async def _counts(request: QueryRequest) -> response_types.Counts:
    options = request.query
    assert isinstance(options, parameters.ObjectQuery)  # noqa: S101  # see QUESTIONS
    number = await request.reader.resolve(options.as_of)
    return response_types.Counts(counts=await request.reader.read(number, query.counts))


async def _instant(request: QueryRequest) -> response_types.Moment:
    options = request.query
    assert isinstance(options, parameters.ObjectQuery)  # noqa: S101  # see QUESTIONS
    number = await request.reader.resolve(options.as_of)
    shown = request.services.log.last_number() if number is None else number
    record = await record_pages.newest(request.services.log, shown)
    return response_types.Moment(number=shown, time="" if record is None else record.time)


async def _explain(request: QueryRequest) -> Struct:
    options = request.query
    assert isinstance(options, parameters.ObjectQuery)  # noqa: S101  # see QUESTIONS
    number = await request.reader.resolve(options.as_of)
    explanation = await request.services.inquiry.explain(request.named, number)
    if explanation is None:
        remedy = "check the key: list the bindings or the rejections"
        raise RefusalError(404, "key", f"no decision for {request.named[:300]!r}", remedy)
    return explanation


async def _verify(request: QueryRequest) -> Struct:
    options = request.query
    assert isinstance(options, parameters.VerifyQuery)  # noqa: S101  # see QUESTIONS
    return await request.services.inquiry.verify(views=options.views)


def _kind(name: str) -> str:
    """Return the kind that a name means, such as Deployment for ``deploy``; an unknown name is returned unchanged."""
    known = kinds.find(name) if name else None
    return known.kind if known else name


def _question(
    path: str, summary: str, takes: type[parameters.Query], gives: type, answer: Answer
) -> Question:
    return Question(path=path, summary=summary, query=takes, gives=gives, answer=answer)


_ANY = response_types.Anything
QUESTIONS: Final[tuple[Question, ...]] = (
    _question(
        "/bindings", "List bindings by page.", parameters.BindingsQuery, response_types.Listing, _bindings
    ),
    _question(
        "/bindings/{key:path}",
        "A binding.",
        parameters.ObjectQuery,
        _ANY,
        _find_by_name(query.get_binding, "the binding"),
    ),
    _question(
        "/rebalancers",
        "List rebalancers by page.",
        parameters.PageQuery,
        response_types.Listing,
        _rebalancers,
    ),
    _question(
        "/rebalancers/{name}",
        "A rebalancer and the result of each of its workloads.",
        parameters.ObjectQuery,
        _ANY,
        _find_by_name(query.get_rebalancer, "the rebalancer"),
    ),
    _question(
        "/clusters", "List clusters by page.", parameters.ClustersQuery, response_types.Listing, _clusters
    ),
    _question(
        "/clusters/{name}",
        "A cluster.",
        parameters.ObjectQuery,
        _ANY,
        _find_by_name(query.get_cluster, "the cluster"),
    ),
    _question(
        "/objects",
        "List objects of any kind by page.",
        parameters.ObjectsQuery,
        response_types.Listing,
        _objects,
    ),
    _question(
        "/works",
        "List works: the workloads assigned to clusters.",
        parameters.WorksQuery,
        response_types.Listing,
        _works,
    ),
    _question(
        "/timeline/{key:path}",
        "All records about a key.",
        parameters.TimelineQuery,
        response_types.Entries,
        _timeline,
    ),
    _question(
        "/rejections",
        "List rejected inputs, with the reasons.",
        parameters.PageQuery,
        response_types.Listing,
        _rejections,
    ),
    _question(
        "/lag",
        "How far projections and shards are behind the log.",
        parameters.Query,
        response_types.Lag,
        _lag,
    ),
    _question(
        "/counts",
        "Numbers of records by type, verdict, trigger and failure.",
        parameters.ObjectQuery,
        response_types.Counts,
        _counts,
    ),
    _question(
        "/moment",
        "The last record at a number, position or instant.",
        parameters.ObjectQuery,
        response_types.Moment,
        _instant,
    ),
    _question("/log", "The records of the log.", parameters.LogQuery, response_types.Entries, _log),
    _question(
        "/explain/{key:path}",
        "Explain the scheduling decision of a binding.",
        parameters.ObjectQuery,
        _ANY,
        _explain,
    ),
    _question(
        "/verify", "Verify the log by computing every step again.", parameters.VerifyQuery, _ANY, _verify
    ),
)
"""All queries; each is a GET under ``/api/v1``."""
