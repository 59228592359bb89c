"""A plain page for people: where each binding is, with a bar for each cluster. No script, and it works without one."""

from pathlib import Path
from typing import Final, cast

import anyio.to_thread
import jinja2
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from engine.gateway import queries
from engine.gateway.question_routes import read_query
from engine.gateway.reading import Reader
from engine.gateway.services import Services
from projections import query
from projections.port import Rows

_TEMPLATES: Final = Path(__file__).parent / "templates"
_PAGE_BINDINGS: Final = 200
_BAR_PIXELS_MAX: Final = 160

Json = dict[str, object]


class Bar(Struct, frozen=True):
    """A cluster's share of a binding; ``pixels`` of the widest bar on the page."""

    cluster: str
    replicas: int
    pixels: int


class Row(Struct, frozen=True):
    """A binding on the page."""

    key: str
    scheduled: str
    message: str
    bars: list[Bar]


class PageQuery(queries.Query, frozen=True, kw_only=True):
    """Which page."""

    continue_: queries.Continue = ""


def routes(services: Services) -> list[Route]:
    """The page and its style."""
    reader = Reader(services)
    loader = jinja2.FileSystemLoader(_TEMPLATES)
    pages = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)

    async def page(request: Request) -> Response:
        after = read_query(request, PageQuery).continue_
        found = await reader.read(None, lambda rows: _look(rows, after))
        return HTMLResponse(await anyio.to_thread.run_sync(_render, pages, found, services.projector.folded))

    async def style(_request: Request) -> Response:
        content = await anyio.to_thread.run_sync((_TEMPLATES / "style.css").read_bytes)
        return Response(content, media_type="text/css")

    return [Route("/", page, methods=["GET"]), Route("/style.css", style, methods=["GET"])]


def _look(rows: Rows, after: str) -> query.Page:
    return query.list_bindings(rows, limit=_PAGE_BINDINGS, after=after)


def _render(pages: jinja2.Environment, found: query.Page, number: int) -> str:
    widest = max((_replicas(target) for item in found.items for target in _targets(item)), default=0)
    rows = [_row(item, widest) for item in found.items]
    return pages.get_template("bindings.html").render(rows=rows, after=found.after, number=number)


def _row(binding: Json, widest: int) -> Row:
    metadata, status = cast("Json", binding["metadata"]), cast("Json", binding["status"])
    namespace, name = metadata.get("namespace"), metadata["name"]
    conditions = cast("list[Json]", status["conditions"])
    nothing: Json = {}
    scheduled = next((each for each in conditions if each["type"] == "Scheduled"), nothing)
    bars = [
        Bar(str(target["name"]), _replicas(target), _BAR_PIXELS_MAX * _replicas(target) // max(widest, 1))
        for target in _targets(binding)
    ]
    return Row(
        key=f"{namespace}/{name}" if namespace else str(name),
        scheduled=str(scheduled.get("status", "")),
        message=str(scheduled.get("message", "")),
        bars=bars,
    )


def _targets(binding: Json) -> list[Json]:
    return cast("list[Json]", cast("Json", binding["spec"])["clusters"])


def _replicas(target: Json) -> int:
    return cast("int", target.get("replicas", 0))
