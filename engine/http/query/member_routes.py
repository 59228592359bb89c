"""The simulated members over HTTP, under ``/api/v1/members``: what runs in them, and fault injection.

If no members are simulated, all these routes return 404.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.errors import RefusalError
from engine.http.query import api_routes, parameters
from engine.http.query.api_routes import PREFIX, ApiRoute, read_query
from engine.simulation import faults
from engine.simulation.listed_statuses import FaultKind, MemberStatus, Pod, WorkloadStatus
from engine.simulation.member_fleet import Members

LISTED_MAX: Final = 10_000
_BODY_BYTES_MAX: Final = 4096
_Limit = Annotated[int, Meta(ge=1, le=LISTED_MAX, description="maximum number of items")]
_CORRECT: Final = (
    'send {"kind": "slow", "amount": 10}; kinds are down, slow, losing, lagging, throttled and failing'
)
_Answer = Callable[[Request], Awaitable[Response]]


class RunningQuery(parameters.Query, frozen=True, kw_only=True):
    """Filter by cluster and namespace; empty matches all."""

    cluster: parameters.Text = ""
    namespace: parameters.Text = ""
    limit: _Limit = LISTED_MAX


class PodsQuery(RunningQuery, frozen=True, kw_only=True):
    """Filter of pods, also by labels: ``app=nginx,tier in (gold,silver),!old``."""

    label_selector: parameters.Labels = ""


class FaultRequest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A fault of a member; ``amount`` depends on its kind.

    slow: factor of start-up times; losing: every n-th report is lost; lagging: delay of each request to the member's
    API, in milliseconds; throttled (429) and failing (503): every n-th of these requests is refused.
    """

    kind: FaultKind
    amount: faults.Amount | None = None


class Running(Struct, frozen=True, kw_only=True):
    """The matching members, pods or workloads; ``truncated``: more match than the limit of the query."""

    items: Sequence[Struct]
    truncated: bool = False


_listing = partial(ApiRoute, refusals=(400, 404, 413), is_list=True)
ROUTES: Final = (
    _listing(path="/members", summary="The simulated members, with their faults.", gives=MemberStatus),
    _listing(path="/members/pods", summary="The pods that run in members.", gives=Pod, query=PodsQuery),
    _listing(
        path="/members/workloads",
        summary="Workloads that run in members, and since when.",
        gives=WorkloadStatus,
        query=RunningQuery,
    ),
    _listing(
        method="POST",
        path="/members/{name}/fault",
        operation="postMembersFault",
        summary="Add a fault to a member.",
        gives=MemberStatus,
        request=FaultRequest,
    ),
    _listing(
        method="POST",
        path="/members/{name}/heal",
        operation="postMembersHeal",
        summary="Remove all faults of a member.",
        gives=MemberStatus,
    ),
)


def routes(members: Members | None) -> list[Route]:
    """The routes of the simulated members; all return 404 if ``members`` is None."""
    if members is None:
        return [_route(route, _no_members) for route in ROUTES]

    async def statuses(request: Request) -> Response:
        read_query(request, parameters.Query)
        return api_routes.answer(Running(items=members.statuses()))

    async def pods(request: Request) -> Response:
        query = read_query(request, PodsQuery)
        labels = parameters.label_test(query.label_selector)
        matching = members.pods(query.cluster or None, query.namespace or None, labels, query.limit + 1)
        return api_routes.answer(_first(matching, query.limit))

    async def workloads(request: Request) -> Response:
        query = read_query(request, RunningQuery)
        matching = members.workloads(query.cluster or None, query.namespace or None, query.limit + 1)
        return api_routes.answer(_first(matching, query.limit))

    async def fault(request: Request) -> Response:
        requested = await api_routes.read_body(
            request, FaultRequest, _BODY_BYTES_MAX, smaller='send {"kind": "down"}', correct=_CORRECT
        )
        await members.fault(str(request.path_params["name"]), requested.kind, requested.amount)
        return api_routes.answer(Running(items=members.statuses()))

    async def heal(request: Request) -> Response:
        await members.heal(str(request.path_params["name"]))
        return api_routes.answer(Running(items=members.statuses()))

    answers = (statuses, pods, workloads, fault, heal)
    return [_route(route, _refusing(answer)) for route, answer in zip(ROUTES, answers, strict=True)]


def _first(matching: Sequence[Struct], limit: int) -> Running:
    return Running(items=matching[:limit], truncated=len(matching) > limit)


def _route(route: ApiRoute, answer: _Answer) -> Route:
    return Route(PREFIX + route.path, answer, methods=[route.method])


async def _no_members(_request: Request) -> Response:
    raise RefusalError(
        404, "members", "no members are simulated here", "start the server without --no-members"
    )


def _refusing(answer: _Answer) -> _Answer:
    """Convert the members' LookupError and ValueError into RefusalError."""

    async def refusing(request: Request) -> Response:
        try:
            return await answer(request)
        except LookupError as error:
            raise RefusalError(
                404, "name", str(error), "list the members: reballast members, or GET /api/v1/members"
            ) from None
        except ValueError as error:
            raise RefusalError(400, "amount", str(error), "see /openapi.json") from None

    return refusing
