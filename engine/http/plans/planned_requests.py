"""Handle a plan's requests to the Kubernetes API as dry runs, and collect the records that they would append."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.types import ASGIApp

from engine import optional_imports
from engine.http.errors import RefusalError
from engine.kubeapi.schema.resources import parse_path
from engine.writing.planned_writes import PlannedWrites
from events.records import Record

# httpx's command line loads click, rich and pygments, which no server uses.
with optional_imports.without("httpx._main"):
    import httpx

PlanningApi = Callable[[PlannedWrites], ASGIApp]
"""A function that returns a Kubernetes API whose writes go to the write API of a plan."""

REQUESTS_MAX: Final = 1_000
_HOST: Final = "http://localhost/"
_EXTERNAL_SUBRESOURCES: Final = frozenset({"proxy", "token", "exec", "attach"})
"""Subresources whose requests have effects outside of the log."""


class PlannedRequest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A request to the Kubernetes API, as a client would send it; ``path`` has no leading slash."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    content_type: Annotated[str, Meta(pattern=r"\A[!-~][ -~]*\Z", max_length=256)] = "application/json"
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


async def records_of(
    requests: Sequence[PlannedRequest], planned: PlannedWrites, planning: PlanningApi, authorization: str
) -> tuple[list[Record], list[str]]:
    """Return the records that requests would append, and the warnings of their responses.

    Raises RefusalError for a request that the Kubernetes API refuses, or that can't be planned.
    """
    warnings: list[str] = []
    transport = httpx.ASGITransport(app=planning(planned), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=_HOST) as client:
        for index, request in enumerate(requests):
            try:
                built = client.build_request(
                    request.method,
                    request.path,
                    params={**httpx.QueryParams(request.path.partition("?")[2]), "dryRun": "All"},
                    content=b"" if request.body is msgspec.UNSET else bytes(request.body),
                    headers={"authorization": authorization, "content-type": request.content_type},
                )
            except (httpx.InvalidURL, UnicodeError) as error:
                field = f"requests[{index}].path"
                raise RefusalError(
                    422, field, f"is not a path: {error}", "give the path of an object"
                ) from None
            _check(index, request.method, built.url.path)
            response = await client.send(built)
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                raise _refusal(index, request, response)
            warnings += response.headers.get_list("warning")
    return planned.records, warnings


def _check(index: int, method: str, path: str) -> None:
    """Raise RefusalError for a request that can't be planned; ``path`` is percent-decoded, as the API will read it."""
    api_path = parse_path(path)
    if api_path is None:
        return  # the API refuses it
    is_object = bool(api_path.name) and not api_path.part
    is_namespace = method == "DELETE" and api_path.plural == "namespaces" and is_object
    if is_namespace or api_path.part in _EXTERNAL_SUBRESOURCES:
        refused_change = (
            "the deletion of a namespace" if is_namespace else "a request with effects outside the log"
        )
        remedy = "plan the deletion of its objects" if is_namespace else "remove it from the plan"
        raise RefusalError(422, f"requests[{index}]", f"{refused_change} can't be planned", remedy)


def _refusal(index: int, request: PlannedRequest, response: httpx.Response) -> RefusalError:
    try:
        reason = str(response.json().get("message", ""))
    except ValueError:
        reason = response.text
    field = f"requests[{index}]: {request.method} {request.path}"
    return RefusalError(422, field, reason, "correct it; the real request would be refused as well")
