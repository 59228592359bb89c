"""The queries: path, parameters, response type and implementation of each. No HTTP here.

The routes, the OpenAPI document and the tests are generated from the table ``QUESTIONS``.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.gateway import answers, label_selectors, lags, queries, records
from engine.gateway.reading import Reader
from engine.gateway.refusals import RefusalError
from engine.gateway.services import Services
from events import forms_kinds as kinds
from projections import query
from projections.port import Rows


class Asked(Struct, frozen=True):
    """One request: its query, the path parameter (``named``), and access to log and views."""

    query: Struct
    named: str
    services: Services
    reader: Reader


Answer = Callable[[Asked], Awaitable[object]]


class Question(Struct, frozen=True, kw_only=True):
    """One query. ``path`` is below ``/api/v1``; ``gives`` is the type of the response."""

    path: str
    summary: str
    query: type[queries.Query]
    gives: type
    answer: Answer


async def _bindings(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.BindingsQuery)  # noqa: S101  # QUESTIONS pairs query types and functions
    found = query.Filter(
        kind=_kind(wanted.kind),
        namespace=wanted.namespace,
        name=wanted.name,
        cluster=wanted.cluster,
        labels=_labels(wanted.label_selector),
    )
    return await _page(asked, wanted, partial(query.list_bindings, wanted=found))


async def _objects(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.ObjectsQuery)  # noqa: S101  # see QUESTIONS
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


async def _clusters(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.ClustersQuery)  # noqa: S101  # see QUESTIONS
    found = query.Filter(labels=_labels(wanted.label_selector))
    return await _page(asked, wanted, partial(query.list_clusters, wanted=found))


async def _rebalancers(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.PageQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, query.list_rebalancers)


async def _works(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.WorksQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, partial(query.list_works, cluster=wanted.cluster, key=wanted.key))


async def _rejections(asked: Asked) -> answers.Listing:
    wanted = asked.query
    assert isinstance(wanted, queries.PageQuery)  # noqa: S101  # see QUESTIONS
    return await _page(asked, wanted, query.list_rejections)


async def _page(asked: Asked, wanted: queries.PageQuery, ask: Callable[..., query.Page]) -> answers.Listing:
    number = await asked.reader.moment(wanted.as_of)

    def look(rows: Rows) -> query.Page:
        return ask(rows, limit=wanted.limit, after=wanted.continue_)

    try:
        page = await asked.reader.read(number, look)
    except ValueError as error:
        raise RefusalError(400, "continue", str(error), "take it from the page before") from None
    return answers.Listing(items=page.items, continue_=page.after)


def _one(find: Callable[[Rows, str], answers.Json | None], what: str) -> Answer:
    async def answer(asked: Asked) -> answers.Json:
        wanted = asked.query
        assert isinstance(wanted, queries.OneQuery)  # noqa: S101  # see QUESTIONS
        number = await asked.reader.moment(wanted.as_of)
        found = await asked.reader.read(number, lambda rows: find(rows, asked.named))
        if found is None:
            raise RefusalError(
                404, "name", f"{what} {asked.named[:300]!r} not found", "list them to see what is there"
            )
        return found

    return answer


async def _timeline(asked: Asked) -> answers.Entries:
    wanted = asked.query
    assert isinstance(wanted, queries.TimelineQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.moment(wanted.as_of)
    ask = partial(query.timeline, key=asked.named, limit=wanted.limit, after=wanted.after)
    # A timeline only grows, so its state at an earlier number is a prefix of today's.
    numbers = await asked.reader.read(None, ask)
    seen = [found for found in numbers if number is None or found <= number]
    is_full = len(seen) == wanted.limit
    return await records.numbered(asked.services.log, seen, is_full=is_full)


async def _log(asked: Asked) -> answers.Entries:
    wanted = asked.query
    assert isinstance(wanted, queries.LogQuery)  # noqa: S101  # see QUESTIONS
    return await records.behind(asked.services.log, wanted)


async def _lag(asked: Asked) -> answers.Lag:
    # Do not ask the brokers: the lag must be reported also while they do not answer.
    await asked.services.views.wait_folded(asked.services.log.last_number())
    steps = await asked.reader.peek(query.shard_steps)
    return lags.lag(asked.services.log, asked.services.views.folded, steps)


async def _counts(asked: Asked) -> answers.Counts:
    wanted = asked.query
    assert isinstance(wanted, queries.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.moment(wanted.as_of)
    return answers.Counts(counts=await asked.reader.read(number, query.counts))


async def _moment(asked: Asked) -> answers.Moment:
    wanted = asked.query
    assert isinstance(wanted, queries.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.moment(wanted.as_of)
    found = asked.services.log.last_number() if number is None else number
    entries = await records.numbered(asked.services.log, [found] if found else [], is_full=False)
    return answers.Moment(number=found, time=entries.items[0].time if entries.items else "")


async def _explain(asked: Asked) -> Struct:
    wanted = asked.query
    assert isinstance(wanted, queries.OneQuery)  # noqa: S101  # see QUESTIONS
    number = await asked.reader.moment(wanted.as_of)
    found = await asked.services.inquiry.explain(asked.named, number)
    if found is None:
        remedy = "list the bindings, or the rejections, to see what is there"
        raise RefusalError(404, "key", f"nothing was decided for {asked.named[:300]!r}", remedy)
    return found


async def _verify(asked: Asked) -> Struct:
    wanted = asked.query
    assert isinstance(wanted, queries.VerifyQuery)  # noqa: S101  # see QUESTIONS
    return await asked.services.inquiry.verify(views=wanted.views)


def _kind(word: str) -> str:
    """The kind of a name: ``deploy``, ``deployments`` and ``Deployment`` are the same."""
    found = kinds.find(word) if word else None
    return found.kind if found else word


def _labels(selector: str) -> query.LabelTest | None:
    """A predicate on labels; None selects all. Raises RefusalError for an invalid selector."""
    return label_selectors.parse(selector).matches if selector.strip() else None


def _question(path: str, summary: str, takes: type[queries.Query], gives: type, answer: Answer) -> Question:
    return Question(path=path, summary=summary, query=takes, gives=gives, answer=answer)


_ANY = answers.Anything
QUESTIONS: Final[tuple[Question, ...]] = (
    _question("/bindings", "Bindings, a page of them.", queries.BindingsQuery, answers.Listing, _bindings),
    _question(
        "/bindings/{key:path}", "A binding.", queries.OneQuery, _ANY, _one(query.get_binding, "the binding")
    ),
    _question(
        "/rebalancers", "Rebalancers, a page of them.", queries.PageQuery, answers.Listing, _rebalancers
    ),
    _question(
        "/rebalancers/{name}",
        "A rebalancer and what became of its workloads.",
        queries.OneQuery,
        _ANY,
        _one(query.get_rebalancer, "the rebalancer"),
    ),
    _question("/clusters", "Clusters, a page of them.", queries.ClustersQuery, answers.Listing, _clusters),
    _question(
        "/clusters/{name}", "A cluster.", queries.OneQuery, _ANY, _one(query.get_cluster, "the cluster")
    ),
    _question(
        "/objects", "Objects of any kind, a page of them.", queries.ObjectsQuery, answers.Listing, _objects
    ),
    _question("/works", "What clusters must run.", queries.WorksQuery, answers.Listing, _works),
    _question(
        "/timeline/{key:path}",
        "Every record that touched a key.",
        queries.TimelineQuery,
        answers.Entries,
        _timeline,
    ),
    _question("/rejections", "What was refused, and why.", queries.PageQuery, answers.Listing, _rejections),
    _question("/lag", "How far everybody is behind the log.", queries.Query, answers.Lag, _lag),
    _question("/counts", "How many records had which effect.", queries.OneQuery, answers.Counts, _counts),
    _question("/moment", "The last record at a moment.", queries.OneQuery, answers.Moment, _moment),
    _question("/log", "The records of the log.", queries.LogQuery, answers.Entries, _log),
    _question("/explain/{key:path}", "Why a binding is where it is.", queries.OneQuery, _ANY, _explain),
    _question("/verify", "Prove the log: every step is computed again.", queries.VerifyQuery, _ANY, _verify),
)
"""All queries; each is a GET under ``/api/v1``."""
