"""The queries: path, parameters, response type and implementation of each. No HTTP here.

The routes, the OpenAPI document and the tests are generated from the table ``QUESTIONS``.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.http.errors import RefusalError
from engine.http.query import label_selectors, parameters, record_pages, response_types, shard_lag
from engine.http.query.view_reads import Reader
from engine.http.services import Services
from events.validation import known_kinds as kinds
from projections import query
from projections.port import Rows


class QueryRequest(Struct, frozen=True):
    """One request: its query, the path parameter (``named``), and access to log and views."""

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


async def _bindings(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.BindingsQuery)  # noqa: S101  # QUESTIONS pairs query types and functions
    found = query.Filter(
        kind=_kind(wanted.kind),
        namespace=wanted.namespace,
        name=wanted.name,
        cluster=wanted.cluster,
        labels=_labels(wanted.label_selector),
    )
    return await _page(asked, wanted, partial(query.list_bindings, wanted=found))


async def _objects(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.ObjectsQuery)  # noqa: S101  # see QUESTIONS
    found = query.Filter(
        kind=_kind(wanted.kind),
        api_version=wanted.api_version,
        namespace=wanted.namespace,
        name=wanted.name,
        labels=_labels(wanted.label_selector),
    )
    if found.kind == "Cluster":
        return await _page(asked, wanted, partial(query.list_clusters, wanted=found))
    return await _page(asked, wanted, partial(query.list_objects, wanted=found))


async def _clusters(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.ClustersQuery)  # noqa: S101  # see QUESTIONS
    found = query.Filter(labels=_labels(wanted.label_selector))
    return await _page(asked, wanted, partial(query.list_clusters, wanted=found))


async def _rebalancers(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.PageQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, query.list_rebalancers)


async def _works(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.WorksQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, partial(query.list_works, cluster=wanted.cluster, key=wanted.key))


async def _rejections(asked: QueryRequest) -> response_types.Listing:
    wanted = asked.query
    assert isinstance(wanted, parameters.PageQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, query.list_rejections)


async def _page(
    asked: QueryRequest, wanted: parameters.PageQuery, ask: Callable[..., query.Page]
) -> response_types.Listing:
    number = await asked.reader.resolve(wanted.as_of)

    def look(rows: Rows) -> query.Page:
        return ask(rows, limit=wanted.limit, after=wanted.continue_)

    try:
        page = await asked.reader.read(number, look)
    except ValueError as error:
        raise RefusalError(400, "continue", str(error), "take it from the page before") from None
    return response_types.Listing(items=page.items, continue_=page.after)


def _one(find: Callable[[Rows, str], response_types.Json | None], what: str) -> Answer:
    async def answer(asked: QueryRequest) -> response_types.Json:
        wanted = asked.query
        assert isinstance(wanted, parameters.OneQuery)  # noqa: S101  # see QUESTIONS
        number = await asked.reader.resolve(wanted.as_of)
        found = await asked.reader.read(number, lambda rows: find(rows, asked.named))
        if found is None:
            raise RefusalError(
                404, "name", f"{what} {asked.named[:300]!r} not found", "list them to see what is there"
            )
        return found

    return answer


async def _timeline(asked: QueryRequest) -> response_types.Entries:
    wanted = asked.query
    assert isinstance(wanted, parameters.TimelineQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.resolve(wanted.as_of)
    ask = partial(query.timeline, key=asked.named, limit=wanted.limit, after=wanted.after)
    # A timeline only grows, so its state at an earlier number is a prefix of today's.
    numbers = await asked.reader.read(None, ask)
    seen = [found for found in numbers if number is None or found <= number]
    is_full = len(seen) == wanted.limit
    return await record_pages.numbered(asked.services.log, seen, is_full=is_full)


async def _log(asked: QueryRequest) -> response_types.Entries:
    wanted = asked.query
    assert isinstance(wanted, parameters.LogQuery)  # noqa: S101  # see QUESTIONS
    return await record_pages.behind(asked.services.log, wanted)


async def _lag(asked: QueryRequest) -> response_types.Lag:
    # Do not ask the brokers: the lag must be reported also while they do not answer.
    await asked.services.views.wait_folded(asked.services.log.last_number())
    steps = await asked.reader.peek(query.shard_steps)
    return shard_lag.lag(asked.services.log, asked.services.views.folded, steps)


async def _counts(asked: QueryRequest) -> response_types.Counts:
    wanted = asked.query
    assert isinstance(wanted, parameters.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.resolve(wanted.as_of)
    return response_types.Counts(counts=await asked.reader.read(number, query.counts))


async def _instant(asked: QueryRequest) -> response_types.Moment:
    wanted = asked.query
    assert isinstance(wanted, parameters.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.resolve(wanted.as_of)
    found = asked.services.log.last_number() if number is None else number
    entries = await record_pages.numbered(asked.services.log, [found] if found else [], is_full=False)
    return response_types.Moment(number=found, time=entries.items[0].time if entries.items else "")


async def _explain(asked: QueryRequest) -> Struct:
    wanted = asked.query
    assert isinstance(wanted, parameters.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.resolve(wanted.as_of)
    found = await asked.services.inquiry.explain(asked.named, number)
    if found is None:
        remedy = "list the bindings, or the rejections, to see what is there"
        raise RefusalError(404, "key", f"nothing was decided for {asked.named[:300]!r}", remedy)
    return found


async def _verify(asked: QueryRequest) -> Struct:
    wanted = asked.query
    assert isinstance(wanted, parameters.VerifyQuery)  # noqa: S101  # see QUESTIONS
    return await asked.services.inquiry.verify(views=wanted.views)


def _kind(word: str) -> str:
    """The kind of a name: ``deploy``, ``deployments`` and ``Deployment`` are the same."""
    found = kinds.find(word) if word else None
    return found.kind if found else word


def _labels(selector: str) -> query.LabelTest | None:
    """A predicate on labels; None selects all. Raises RefusalError for an invalid selector."""
    return label_selectors.parse(selector).matches if selector.strip() else None


def _question(
    path: str, summary: str, takes: type[parameters.Query], gives: type, answer: Answer
) -> Question:
    return Question(path=path, summary=summary, query=takes, gives=gives, answer=answer)


_ANY = response_types.Anything
QUESTIONS: Final[tuple[Question, ...]] = (
    _question(
        "/bindings", "Bindings, a page of them.", parameters.BindingsQuery, response_types.Listing, _bindings
    ),
    _question(
        "/bindings/{key:path}",
        "A binding.",
        parameters.OneQuery,
        _ANY,
        _one(query.get_binding, "the binding"),
    ),
    _question(
        "/rebalancers",
        "Rebalancers, a page of them.",
        parameters.PageQuery,
        response_types.Listing,
        _rebalancers,
    ),
    _question(
        "/rebalancers/{name}",
        "A rebalancer and what became of its workloads.",
        parameters.OneQuery,
        _ANY,
        _one(query.get_rebalancer, "the rebalancer"),
    ),
    _question(
        "/clusters", "Clusters, a page of them.", parameters.ClustersQuery, response_types.Listing, _clusters
    ),
    _question(
        "/clusters/{name}", "A cluster.", parameters.OneQuery, _ANY, _one(query.get_cluster, "the cluster")
    ),
    _question(
        "/objects",
        "Objects of any kind, a page of them.",
        parameters.ObjectsQuery,
        response_types.Listing,
        _objects,
    ),
    _question("/works", "What clusters must run.", parameters.WorksQuery, response_types.Listing, _works),
    _question(
        "/timeline/{key:path}",
        "Every record that touched a key.",
        parameters.TimelineQuery,
        response_types.Entries,
        _timeline,
    ),
    _question(
        "/rejections", "What was refused, and why.", parameters.PageQuery, response_types.Listing, _rejections
    ),
    _question("/lag", "How far everybody is behind the log.", parameters.Query, response_types.Lag, _lag),
    _question(
        "/counts", "How many records had which effect.", parameters.OneQuery, response_types.Counts, _counts
    ),
    _question(
        "/moment", "The last record at a moment.", parameters.OneQuery, response_types.Moment, _instant
    ),
    _question("/log", "The records of the log.", parameters.LogQuery, response_types.Entries, _log),
    _question("/explain/{key:path}", "Why a binding is where it is.", parameters.OneQuery, _ANY, _explain),
    _question(
        "/verify", "Prove the log: every step is computed again.", parameters.VerifyQuery, _ANY, _verify
    ),
)
"""All queries; each is a GET under ``/api/v1``."""
