"""HTML pages about bindings, clusters and rebalancers. They work without JavaScript; with it they follow the log.

``asOf`` shows an earlier state. The modules ``*_values`` compute the values of pages, ``templates`` has their markup.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import anyio.to_thread
import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from engine.http.errors import RefusalError
from engine.http.pages import binding_values, cluster_values, errors
from engine.http.query import record_pages
from engine.http.query.api_routes import PREFIX, read_query
from engine.http.query.parameters import BindingsQuery, ObjectQuery, PageQuery
from engine.http.query.response_types import Entry
from engine.http.query.view_reads import Reader
from engine.http.services import Inquiry, Services
from engine.objects import bindings
from engine.writing.read_side import ReadSide
from events import catalogue, keys, topics
from events.json_values import object_at
from events.kube_objects import KubeObject
from projections import observed_bindings, query

_FILES: Final = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_EVENTS_SHOWN: Final = 100
_EXPLAINED_AT_ONCE_RECORDS: Final = 20_000
"""A binding's page includes the explanation up to this sequence number; in longer logs it would take too long."""

_STATE_PARAMETERS: Final = frozenset({"asOf", "continue"})
"""Query parameters that a link to another state of a page leaves out; the link keeps the filters of the page."""


class _Feed(Struct, frozen=True):
    """The URL of a feed and the event types to listen for, separated by spaces; empty for none."""

    path: str = ""
    types: str = ""


class ShownState(Struct, frozen=True):
    """The state that a page shows: as of ``number``, or the current one if it is None.

    ``shown`` is the sequence number of the last record that the page includes.
    """

    number: int | None
    shown: int

    @property
    def query(self) -> str:
        """The query string that makes a link show the same state; empty for the current state."""
        return "" if self.number is None else f"?asOf={self.number}"


_Page = tuple[str, Mapping[str, object], _Feed]
"""The name of the HTML template, the values for it, and the feed that the page follows."""
_Query = TypeVar("_Query", bound=ObjectQuery)
_Show = Callable[[Request, _Query, ShownState], Awaitable[_Page]]


def routes(services: Services) -> list[Route]:
    """The routes of all pages, and of the style sheet, the script and the icon."""
    reader = Reader(services, services.as_of_views)
    pages = _Pages(services, reader, services.inquiry, observes=services.compared is not None)
    of_object = (
        ("/bindings/{key:path}", pages.binding),
        ("/explain/{key:path}", pages.explanation),
        ("/timeline/{key:path}", pages.timeline),
    )
    answers = {path: pages.answering(show, ObjectQuery) for path, show in of_object}
    answers["/"] = pages.answering(pages.bindings, BindingsQuery)
    answers["/clusters"] = pages.answering(pages.clusters, PageQuery)
    answers["/rebalancers"] = pages.answering(pages.rebalancers, PageQuery)
    answers |= {f"/{name}": partial(_file, name) for name in _FILES}
    return [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]


class _Pages:
    def __init__(self, reads: ReadSide, reader: Reader, inquiry: Inquiry, *, observes: bool) -> None:
        self._reads = reads
        self._reader = reader
        self._inquiry = inquiry
        self._observes = observes
        self._templates = errors.templates()

    def answering(self, show: _Show[_Query], shape: type[_Query]) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a page function as a request handler; ``shape`` has the parameters of the page."""

        async def answer(request: Request) -> Response:
            options = read_query(request, shape)
            number = await self._reader.resolve(options.as_of)
            shown = await self._reads.catch_up() if number is None else number
            state = ShownState(number, shown)
            template, values, feed = await show(request, options, state)
            followed = (
                {"feed": feed.path, "types": feed.types} if number is None else {"feed": "", "types": ""}
            )
            path = request.url.path
            common = {
                "json": _json(path, request.query_params, state),
                "view": state,
                "path": path,
                "filters": _filters(request),
            }
            rendered = await anyio.to_thread.run_sync(
                lambda: self._templates.get_template(template).render({**common, **values, **followed})
            )
            return HTMLResponse(rendered)

        return answer

    async def bindings(self, request: Request, options: BindingsQuery, state: ShownState) -> _Page:
        selection = options.filter
        page = await self._list(partial(query.list_bindings, filters=selection), options, state)
        is_own = bool(page.items) or selection != query.Filter()
        if not is_own:
            page = await self._observed_bindings(options, state)
        values = {
            "rows": binding_values.rows([bindings.of(item) for item in page.items]),
            "is_own": is_own,
            "link": "/bindings/" if is_own else "/timeline/",
            "json": _json("/bindings", request.query_params, state) if is_own or not page.items else "",
            "more": _more(page.after, state, _filters(request)),
            "observes": self._observes,
        }
        return "bindings.html", values, _follow(topics.DECISIONS if is_own else topics.OBSERVATIONS)

    async def binding(self, request: Request, _options: ObjectQuery, state: ShownState) -> _Page:
        """One binding: state, conditions, explanation and latest records.

        If the binding does not exist, show the timeline of the key with a note. Raises RefusalError (404) if no
        record touched the key.
        """
        key = str(request.path_params["key"])
        document = await self._reader.read(state.number, lambda rows: query.get_binding(rows, key))
        if document is None:
            note = "This binding does not exist at this number of the log."
            return await self._story(key, state, note)
        is_short = state.shown <= _EXPLAINED_AT_ONCE_RECORDS
        explained = await self._explained(key, state) if is_short else None
        events, left_out = await self._events(key, state)
        binding = bindings.of(document)
        values = {
            "row": binding_values.rows([binding])[0],
            "conditions": binding.status.conditions,
            "policy": binding_values.policy(binding),
            "explanation": explained,
            "is_undecided": is_short and explained is None,
            "events": events,
            "left_out": left_out,
        }
        return "binding.html", values, _follow(key=key)

    async def explanation(self, request: Request, _options: ObjectQuery, state: ShownState) -> _Page:
        """The explanation of a binding; raises RefusalError (404) if there is no decision."""
        key = str(request.path_params["key"])
        explained = await self._explained(key, state)
        if explained is None:
            remedy = "check the key in the list of bindings: /"
            raise RefusalError(404, "key", f"no decision for {key[:300]!r}", remedy)
        return "explanation.html", {"key": key, "explanation": explained}, _Feed()

    async def timeline(self, request: Request, _options: ObjectQuery, state: ShownState) -> _Page:
        return await self._story(str(request.path_params["key"]), state)

    async def _story(self, key: str, state: ShownState, note: str = "") -> _Page:
        events, left_out = await self._events(key, state)
        if not events:
            raise RefusalError(404, "key", f"no record about {key[:300]!r}", "check the key in the lists: /")
        address = _json(f"/timeline/{key}", {}, state)
        values = {"key": key, "events": events, "left_out": left_out, "note": note, "json": address}
        return "timeline.html", values, _follow(key=key)

    async def clusters(self, request: Request, options: PageQuery, state: ShownState) -> _Page:
        page = await self._list(query.list_clusters, options, state)
        rows = [cluster_values.row(cluster_values.read(item)) for item in page.items]
        values = {
            "rows": rows,
            "more": _more(page.after, state, _filters(request)),
            "width": cluster_values.METER_PIXELS,
        }
        return "clusters.html", values, _follow(topics.CLUSTERS)

    async def rebalancers(self, request: Request, options: PageQuery, state: ShownState) -> _Page:
        page = await self._list(query.list_rebalancers, options, state)
        rows = [
            {
                "name": item.name,
                "wanted": item.objects_at("spec", "workloads"),
                "observed": item.objects_at("status", "observedWorkloads"),
                "finished": item.text_at("status", "finishTime"),
            }
            for item in page.items
        ]
        return (
            "rebalancers.html",
            {"rows": rows, "more": _more(page.after, state, _filters(request))},
            _follow(topics.DECISIONS),
        )

    async def _list(
        self, list_page: Callable[..., query.Objects], options: PageQuery, state: ShownState
    ) -> query.Objects:
        return await self._reader.page(state.number, list_page, options.limit, options.continue_)

    async def _observed_bindings(self, options: PageQuery, state: ShownState) -> query.Objects:
        """A page of the bindings of an observed control plane, as they were last observed."""
        listed = await self._reader.read(
            state.number, lambda rows: observed_bindings.listed(rows, options.limit + 1, options.continue_)
        )
        if not listed:
            return query.Objects([], "")
        numbers = [number for _, number in listed[: options.limit]]
        # Fewer records may be returned, since the size of a page is limited.
        page = await record_pages.numbered(self._reads.log, numbers, is_full=True)
        items = await anyio.to_thread.run_sync(
            lambda: [
                _shown_as_observed(
                    key, KubeObject(object_at(msgspec.json.decode(item.data or b"{}"), "manifest"))
                )
                for (key, _), item in zip(listed, page.items, strict=False)
            ]
        )
        return query.Objects(items, listed[len(items) - 1][0] if len(items) < len(listed) else "")

    async def _explained(self, key: str, state: ShownState) -> binding_values.Explanation | None:
        explained = await self._inquiry.explain(key, state.number)
        return binding_values.explanation(explained) if explained is not None else None

    async def _events(self, key: str, state: ShownState) -> tuple[list[Entry], int]:
        """The newest records that touched a key, newest first, and the number of older ones left out."""
        before = state.shown + 1
        numbers, count = await self._reader.read(
            None,
            lambda rows: (
                query.newest(rows, key, limit=_EVENTS_SHOWN, before=before),
                query.timeline_length(rows, key, before=before),
            ),
        )
        page = await record_pages.numbered(self._reads.log, numbers[::-1], is_full=False)
        return page.items, count - len(page.items)


def _shown_as_observed(key: str, binding: KubeObject) -> KubeObject:
    """Return an observed binding; one that cannot be read is replaced by its name and the reason."""
    try:
        if bindings.of(binding).key == key:
            return binding
        reason = "the observed object does not have this name"
    except msgspec.ValidationError as error:
        reason = str(error)
    namespace, name = keys.split(key)
    failure = {"type": "Scheduled", "status": "False", "reason": "Unreadable", "message": reason}
    return KubeObject(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"resource": {"name": name}},
            "status": {"conditions": [failure]},
        }
    )


def _filters(request: Request) -> Mapping[str, str]:
    """The filters in the address of a page, without empty ones, which a form sends."""
    return {
        name: value for name, value in request.query_params.items() if value and name not in _STATE_PARAMETERS
    }


def _more(after: str, state: ShownState, filters: Mapping[str, str]) -> str:
    """The query string of the next page; empty on the last one."""
    if not after:
        return ""
    as_of = {} if state.number is None else {"asOf": state.number}
    return "?" + urlencode({"continue": after, **as_of, **filters})


def _json(path: str, parameters: Mapping[str, str], state: ShownState) -> str:
    """The address of a page's data in the query API; a time in ``asOf`` is replaced by the sequence number."""
    as_of = {} if state.number is None else {"asOf": state.number}
    query_string = urlencode({**parameters, **as_of})
    return PREFIX + quote(path) + (f"?{query_string}" if query_string else "")


async def _file(name: str, _request: Request) -> Response:
    content = await anyio.to_thread.run_sync((errors.TEMPLATES / name).read_bytes)
    return Response(content, media_type=_FILES[name])


def _follow(topic: str = "", key: str = "") -> _Feed:
    """The feed of records of one topic or about one key; of all records if both are empty."""
    types = (entry.type for entry in catalogue.EVENT_TYPES if topic in ("", entry.topic))
    parameters = {name: value for name, value in (("topic", topic), ("key", key)) if value}
    path = f"{PREFIX}/live?{urlencode(parameters)}"
    # A step alone changes nothing on a page; its outputs are separate records.
    return _Feed(path, " ".join(type_ for type_ in types if type_ != catalogue.STEP_TAKEN))
