"""Errors as HTML pages for browsers; other clients get them as JSON."""

from collections.abc import Mapping
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast

import anyio.to_thread
import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from engine.http import summaries
from engine.http.errors import RefusalError
from engine.plans import summaries as plans
from events import times

TEMPLATES: Final = Path(__file__).parent / "templates"
_HTML: Final = "text/html"

NOW: Final = {"number": None, "shown": None, "query": ""}
"""The template variable ``view`` of pages that show only the current state."""


@cache
def templates() -> jinja2.Environment:
    """The Jinja environment with the templates of all pages."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["utc"] = _utc
    cast("dict[str, object]", environment.globals).update(
        duration=plans.duration,
        event_name=summaries.event_name,
        failures=summaries.failures,
        fields=summaries.fields,
        free_replicas=summaries.free_replicas,
        summary=partial(summaries.summary, is_named=False),
    )
    return environment


def _utc(time: str) -> str:
    """Convert an RFC 3339 time to UTC with whole seconds; return other text, as producers may write it, unchanged."""
    try:
        return times.to_seconds_text(times.from_text(time))
    except ValueError:
        return time


async def answer(
    request: Request, refusal: RefusalError, headers: Mapping[str, str] | None = None
) -> Response:
    """The response for a refusal: HTML if the client's Accept header names it, as browsers do; JSON otherwise."""
    return await anyio.to_thread.run_sync(chosen, request, refusal, headers)


def chosen(request: Request, refusal: RefusalError, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for a refusal, as ``answer`` does, but block while the page's template is read from disk."""
    if _HTML not in request.headers.get("accept", ""):
        return refusal.response(headers)
    values = {
        "status": refusal.status,
        "title": HTTPStatus(refusal.status).phrase,
        "problem": refusal.problem,
        "path": request.url.path,
        "view": NOW,
        "json": "",
        "feed": "",
        "types": "",
    }
    return HTMLResponse(templates().get_template("refusal.html").render(values), refusal.status, headers)
