"""HTML pages about bindings, clusters and rebalancers. They work without a script; with it they follow the log.

``asOf`` shows an earlier state. ``page_*`` computes the values of a page, ``templates`` its markup.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlencode

import anyio.to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from engine.http.errors import RefusalError
from engine.http.json_parts import items, part
from engine.http.pages import binding_values, cluster_values, errors, timeline_values
from engine.http.pages.reloads import Feed, follow
from engine.http.query import parameters, record_pages
from engine.http.query.routes import read_query
from engine.http.query.view_reads import Reader
from engine.http.services import Services
from events import topics
from projections import query
from projections.port import Rows

_FILES: Final = {"style.css": "text/css", "live.js": "text/javascript"}
_PAGE_ITEMS: Final = 200
_EVENTS_SHOWN: Final = 100
_EXPLAINED_AT_ONCE_RECORDS: Final = 20_000
"""In logs up to this length a binding's page includes its explanation; in longer ones that would take too long."""


class PageQuery(parameters.OneQuery, frozen=True, kw_only=True):
    """Parameters of a page: ``asOf`` and ``continue``."""

    continue_: parameters.Continue = ""


class ShownState(Struct, frozen=True):
    """The state that a page shows: ``number`` is None for now; ``shown`` is the last folded number that it includes."""

    number: int | None
    shown: int

    @property
    def query(self) -> str:
        """The query string that keeps a link at the same as-of number; empty for now."""
        return "" if self.number is None else f"?asOf={self.number}"


_Page = tuple[str, Mapping[str, object], Feed]
"""The template's name, its values, and the feed that the page follows."""
_Show = Callable[[Request, PageQuery, ShownState], Awaitable[_Page]]


def routes(services: Services) -> list[Route]:
    """The routes of all pages, of the style sheet and of the script."""
    pages = _Pages(services)
    table: tuple[tuple[str, _Show], ...] = (
        ("/", pages.bindings),
        ("/bindings/{key:path}", pages.binding),
        ("/explain/{key:path}", pages.explanation),
        ("/timeline/{key:path}", pages.timeline),
        ("/clusters", pages.clusters),
        ("/rebalancers", pages.rebalancers),
    )
    shown = [Route(path, pages.answering(show), methods=["GET"]) for path, show in table]
    return [*shown, *(Route(f"/{name}", partial(_file, name), methods=["GET"]) for name in _FILES)]


class _Pages:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._reader = Reader(services)
        self._templates = errors.templates()

    def answering(self, show: _Show) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a page function as a request handler."""

        async def answer(request: Request) -> Response:
            wanted = read_query(request, PageQuery)
            number = await self._reader.resolve(wanted.as_of)
            shown = await self._services.catch_up() if number is None else number
            moment = ShownState(number, shown)
            template, values, feed = await show(request, wanted, moment)
            followed = (
                {"feed": feed.path, "types": feed.types} if number is None else {"feed": "", "types": ""}
            )
            path = request.url.path
            render = partial(self._render, template, {**values, **followed, "moment": moment, "path": path})
            return HTMLResponse(await anyio.to_thread.run_sync(render))

        return answer

    async def bindings(self, _request: Request, wanted: PageQuery, moment: ShownState) -> _Page:
        found = await self._list(query.list_bindings, wanted, moment)
        rows = binding_values.rows(found.items)
        values = {"rows": rows, "more": _more(found.after, moment), "most": binding_values.BAR_PIXELS_MAX}
        return "bindings.html", values, follow(topics.DECISIONS)

    async def binding(self, request: Request, _wanted: PageQuery, moment: ShownState) -> _Page:
        """One binding: state, conditions, explanation and latest records.

        For a binding that does not exist, its timeline with a note; raises RefusalError (404) if no record
        touched the key.
        """
        key = str(request.path_params["key"])
        found = await self._reader.read(moment.number, lambda rows: query.get_binding(rows, key))
        if found is None:
            note = "There is no such binding at this moment."
            return await self._story(key, moment, note)
        explained = None
        if moment.shown <= _EXPLAINED_AT_ONCE_RECORDS:
            explained = await self._explained(key, moment)
        events, left_out = await self._events(key, moment)
        values = {
            "row": binding_values.rows([found])[0],
            "conditions": binding_values.conditions(found),
            "policy": binding_values.policy(found),
            "explanation": explained,
            "events": events,
            "left_out": left_out,
        }
        return "binding.html", values, follow(key=key)

    async def explanation(self, request: Request, _wanted: PageQuery, moment: ShownState) -> _Page:
        """The explanation of a binding; raises RefusalError (404) if there is no decision."""
        key = str(request.path_params["key"])
        explained = await self._explained(key, moment)
        if explained is None:
            remedy = "look at the list of all bindings: /"
            raise RefusalError(404, "key", f"nothing was decided for {key[:300]!r}", remedy)
        return "explanation.html", {"key": key, "explanation": explained}, Feed()

    async def timeline(self, request: Request, _wanted: PageQuery, moment: ShownState) -> _Page:
        return await self._story(str(request.path_params["key"]), moment)

    async def _story(self, key: str, moment: ShownState, note: str = "") -> _Page:
        events, left_out = await self._events(key, moment)
        if not events:
            raise RefusalError(404, "key", f"nothing ever touched {key[:300]!r}", "look at the lists: /")
        values = {"key": key, "events": events, "left_out": left_out, "note": note}
        return "timeline.html", values, follow(key=key)

    async def clusters(self, _request: Request, wanted: PageQuery, moment: ShownState) -> _Page:
        found = await self._list(query.list_clusters, wanted, moment)
        rows = [cluster_values.row(each) for each in found.items]
        values = {"rows": rows, "more": _more(found.after, moment), "width": cluster_values.METER_PIXELS}
        return "clusters.html", values, follow(topics.CLUSTERS)

    async def rebalancers(self, _request: Request, wanted: PageQuery, moment: ShownState) -> _Page:
        found = await self._list(query.list_rebalancers, wanted, moment)
        rows = [
            {
                "name": part(each, "metadata").get("name"),
                "wanted": items(part(each, "spec").get("workloads")),
                "observed": items(part(each, "status").get("observedWorkloads")),
                "finished": part(each, "status").get("finishTime", ""),
            }
            for each in found.items
        ]
        return (
            "rebalancers.html",
            {"rows": rows, "more": _more(found.after, moment)},
            follow(topics.DECISIONS),
        )

    async def _list(
        self, ask: Callable[..., query.Page], wanted: PageQuery, moment: ShownState
    ) -> query.Page:
        def look(rows: Rows) -> query.Page:
            return ask(rows, limit=_PAGE_ITEMS, after=wanted.continue_)

        try:
            return await self._reader.read(moment.number, look)
        except ValueError as error:
            raise RefusalError(400, "continue", str(error), "take it from the page before") from None

    async def _explained(self, key: str, moment: ShownState) -> timeline_values.Explanation | None:
        told = await self._services.inquiry.explain(key, moment.number)
        return timeline_values.explanation(told) if told is not None else None

    async def _events(self, key: str, moment: ShownState) -> tuple[list[timeline_values.Event], int]:
        """The newest records that touched a key, newest first, and the number of older ones left out."""
        numbers = await self._reader.read(None, lambda rows: _touching(rows, key, moment.shown))
        newest = numbers[: -_EVENTS_SHOWN - 1 : -1]
        found = await record_pages.numbered(self._services.log, newest, is_full=False)
        events = [timeline_values.event(each) for each in found.items]
        return events, len(numbers) - len(events)

    def _render(self, template: str, values: Mapping[str, object]) -> str:
        return self._templates.get_template(template).render(values)


def _touching(rows: Rows, key: str, until: int) -> list[int]:
    """Numbers of all records that touched a key, up to ``until``."""
    found: list[int] = []
    while batch := query.timeline(rows, key, limit=query.LIMIT_MAX, after=found[-1] if found else 0):
        found += batch
    return [number for number in found if number <= until]


def _more(after: str, moment: ShownState) -> str:
    """The query string of the next page; empty on the last one."""
    if not after:
        return ""
    as_of = {} if moment.number is None else {"asOf": moment.number}
    return "?" + urlencode({"continue": after, **as_of})


async def _file(name: str, _request: Request) -> Response:
    content = await anyio.to_thread.run_sync((errors.TEMPLATES / name).read_bytes)
    return Response(content, media_type=_FILES[name])
