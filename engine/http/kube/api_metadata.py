"""API metadata: version, health, discovery (plain and aggregated), OpenAPI."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from engine.http.kube import openapi_responses, rendering
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema import discovery
from engine.kubeapi.schema.resources import Catalogue

_HEALTH: Final = ("healthz", "livez", "readyz")
_ROOT: Final = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]

Kinds = Callable[[], Awaitable[Catalogue]]


async def answer(request: Request, steps: list[str], kinds: Kinds) -> Response | None:
    """The response to a path that is not about objects; None if the path is about objects. Raises StatusError."""
    match steps:
        case ["version"]:
            return rendering.answer(discovery.VERSION)
        case [step] | [step, "ping"] if step in _HEALTH:
            is_verbose = "verbose" in request.query_params and len(steps) == 1
            return PlainTextResponse(f"[+]ping ok\n{step} check passed\n" if is_verbose else "ok")
        case [""]:
            return rendering.answer({"paths": _ROOT})
        case ["openapi", *below]:
            return await openapi_responses.answer(request, below, await kinds())
        case ["api" | "apis" as step]:
            return _groups(request, step, await kinds())
        case ["api", _] | ["apis", _] | ["apis", _, _]:
            return _group(steps[1:] if steps[0] == "apis" else ["", *steps[1:]], await kinds())
        case _:
            return None


def _groups(request: Request, root: str, catalogue: Catalogue) -> Response:
    version = discovery.negotiated(request.headers.get("accept", ""))
    if version:
        body = discovery.aggregated(catalogue, core=root == "api", version=version)
        response = rendering.answer(body)
        response.headers["content-type"] = discovery.aggregated_type(version)
        return response
    if root == "api":
        return rendering.answer(discovery.api_versions(request.headers.get("host", "")))
    return rendering.answer(discovery.api_groups(catalogue))


def _group(names: list[str], catalogue: Catalogue) -> Response:
    match names:
        case [group, version]:
            document = discovery.api_resources(catalogue, group, version)
        case _:
            document = discovery.api_group(catalogue, names[0])
    if document is None:
        raise status_objects.no_such_path()
    return rendering.answer(document)
