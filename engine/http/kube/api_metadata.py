"""API metadata: version, health, discovery (plain and aggregated), OpenAPI v3 and the part of v2 that kubectl needs."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from engine.http.kube import rendering
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema import discovery, openapi, openapi_v2
from engine.kubeapi.schema.resources import Catalogue
from engine.kubeapi.schema.schemas import Json

_HEALTH: Final = ("healthz", "livez", "readyz")
_ROOT: Final = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]

Kinds = Callable[[], Awaitable[Catalogue]]


async def answer(request: Request, steps: list[str], kinds: Kinds) -> Response | None:
    """The response to a path that is not about objects; None if it is. Raises StatusError."""
    match steps:
        case ["version"]:
            return rendering.answer(discovery.VERSION)
        case [word, *_] if word in _HEALTH:
            is_verbose = "verbose" in request.query_params
            return PlainTextResponse(f"[+]ping ok\n{word} check passed\n" if is_verbose else "ok")
        case [""]:
            return rendering.answer({"paths": _ROOT})
        case ["openapi", "v2"]:
            catalogue = await kinds()
            found = await anyio.to_thread.run_sync(openapi_v2.document, catalogue)
            return Response(found, media_type=openapi_v2.MEDIA_TYPE)
        case ["openapi", "v3", *below]:
            return await _openapi(below, await kinds())
        case ["api" | "apis" as word]:
            return _groups(request, word, await kinds())
        case ["api", _] | ["apis", _] | ["apis", _, _]:
            return _group(steps[1:] if steps[0] == "apis" else ["", *steps[1:]], await kinds())
        case _:
            return None


def _groups(request: Request, word: str, catalogue: Catalogue) -> Response:
    wanted = discovery.negotiated(request.headers.get("accept", ""))
    if wanted:
        body = discovery.aggregated(catalogue, core=word == "api", version=wanted)
        response = rendering.answer(body)
        response.headers["content-type"] = discovery.aggregated_type(wanted)
        return response
    if word == "api":
        return rendering.answer(discovery.api_versions(request.headers.get("host", "")))
    return rendering.answer(discovery.api_groups(catalogue))


def _group(names: list[str], catalogue: Catalogue) -> Response:
    match names:
        case [group, version]:
            return _found(discovery.api_resources(catalogue, group, version))
        case _:
            return _found(discovery.api_group(catalogue, names[0]))


async def _openapi(below: list[str], catalogue: Catalogue) -> Response:
    match below:
        case []:
            return rendering.answer(await anyio.to_thread.run_sync(openapi.index, catalogue))
        case ["api", version]:
            found = await anyio.to_thread.run_sync(openapi.document, catalogue, "", version)
        case ["apis", group, version]:
            found = await anyio.to_thread.run_sync(openapi.document, catalogue, group, version)
        case _:
            found = None
    return _found(found)


def _found(body: Json | None) -> Response:
    if body is None:
        raise status_objects.no_such_path()
    return rendering.answer(body)
