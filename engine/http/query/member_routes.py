"""The simulated members over HTTP, under ``/api/v1/members``: what runs in them, and fault injection.

If no members are simulated, all these routes return 404.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http import incoming_requests
from engine.http.errors import RefusalError
from engine.http.query import parameters
from engine.http.query.routes import PREFIX
from events.json_values import DECODING_ERRORS
from projections.query import LabelTest

Kind = Literal["down", "slow", "losing", "lagging", "throttled", "failing"]

LISTED_MAX: Final = 10_000
_BODY_BYTES_MAX: Final = 4096
_Limit = Annotated[int, Meta(ge=1, le=LISTED_MAX, description="maximum number of items")]
_Query = TypeVar("_Query", bound=parameters.Query)
_Answer = Callable[[Request], Awaitable[Response]]


class SimulatedMembers(Protocol):
    """The simulated members. Unknown names raise LookupError, invalid amounts ValueError."""

    def statuses(self) -> Sequence[Struct]:
        """All members with their faults."""
        ...

    def pods(
        self, member: str | None, namespace: str | None, labels: LabelTest | None, limit: int
    ) -> Sequence[Struct]:
        """At most ``limit`` pods that match; None matches all."""
        ...

    def workloads(self, member: str | None, namespace: str | None, limit: int) -> Sequence[Struct]:
        """At most ``limit`` workloads that match; None matches all."""
        ...

    async def fault(self, name: str, kind: Kind, amount: int | None) -> None:
        """Add a fault to a member; what ``amount`` means depends on the kind of fault (see ``FaultRequest``)."""
        ...

    async def heal(self, name: str) -> None:
        """Remove all faults of a member."""
        ...


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

    kind: Kind
    amount: int | None = None


class Running(Struct, frozen=True, kw_only=True):
    """The matching members, pods or workloads; ``truncated``: more match than the limit of the query."""

    items: Sequence[Struct]
    truncated: bool = False


class MemberRoute(Struct, frozen=True, kw_only=True):
    """One route, as the OpenAPI document describes it.

    ``path`` is below ``/api/v1``; ``gives`` is the type of the listed items.
    """

    method: Literal["GET", "POST"]
    path: str
    operation: str
    summary: str
    gives: Literal["MemberStatus", "Pod", "WorkloadStatus"]
    query: type[parameters.Query] | None = None
    request: type[Struct] | None = None


STATUSES: Final = MemberRoute(
    method="GET",
    path="/members",
    operation="getMembers",
    summary="The simulated members, with their faults.",
    gives="MemberStatus",
    query=parameters.Query,
)
PODS: Final = MemberRoute(
    method="GET",
    path="/members/pods",
    operation="getMembersPods",
    summary="The pods that run in members.",
    gives="Pod",
    query=PodsQuery,
)
WORKLOADS: Final = MemberRoute(
    method="GET",
    path="/members/workloads",
    operation="getMembersWorkloads",
    summary="Workloads that run in members, and since when.",
    gives="WorkloadStatus",
    query=RunningQuery,
)
FAULT: Final = MemberRoute(
    method="POST",
    path="/members/{name}/fault",
    operation="postMembersFault",
    summary="Add a fault to a member.",
    gives="MemberStatus",
    request=FaultRequest,
)
HEAL: Final = MemberRoute(
    method="POST",
    path="/members/{name}/heal",
    operation="postMembersHeal",
    summary="Remove all faults of a member.",
    gives="MemberStatus",
)
ROUTES: Final = (STATUSES, PODS, WORKLOADS, FAULT, HEAL)


def routes(members: SimulatedMembers | None) -> list[Route]:
    """The routes of the simulated members; all return 404 if ``members`` is None."""
    if members is None:
        return [_route(route, _no_members) for route in ROUTES]

    async def statuses(request: Request) -> Response:
        _read(request, parameters.Query)
        return _json(Running(items=members.statuses()))

    async def pods(request: Request) -> Response:
        query = _read(request, PodsQuery)
        labels = parameters.label_test(query.label_selector)
        matching = members.pods(query.cluster or None, query.namespace or None, labels, query.limit + 1)
        return _json(_first(matching, query.limit))

    async def workloads(request: Request) -> Response:
        query = _read(request, RunningQuery)
        matching = members.workloads(query.cluster or None, query.namespace or None, query.limit + 1)
        return _json(_first(matching, query.limit))

    async def fault(request: Request) -> Response:
        requested = await _read_fault(request)
        await members.fault(str(request.path_params["name"]), requested.kind, requested.amount)
        return _json(Running(items=members.statuses()))

    async def heal(request: Request) -> Response:
        await members.heal(str(request.path_params["name"]))
        return _json(Running(items=members.statuses()))

    answers = (statuses, pods, workloads, fault, heal)
    return [_route(route, _refusing(answer)) for route, answer in zip(ROUTES, answers, strict=True)]


def _first(matching: Sequence[Struct], limit: int) -> Running:
    return Running(items=matching[:limit], truncated=len(matching) > limit)


def _route(route: MemberRoute, answer: _Answer) -> Route:
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
            raise RefusalError(404, "name", str(error), "list the members: GET /api/v1/members") from None
        except ValueError as error:
            raise RefusalError(400, "amount", str(error), "see /openapi.json") from None

    return refusing


def _read(request: Request, shape: type[_Query]) -> _Query:
    try:
        return msgspec.convert(dict(request.query_params), shape, strict=False)
    except msgspec.ValidationError as error:
        raise RefusalError(400, "query", str(error), "see /openapi.json") from None


async def _read_fault(request: Request) -> FaultRequest:
    try:
        return msgspec.json.decode(
            await incoming_requests.read_body(request, _BODY_BYTES_MAX), type=FaultRequest
        )
    except incoming_requests.TooLargeError as error:
        raise RefusalError(413, "body", str(error), 'send {"kind": "down"}') from None
    except DECODING_ERRORS as error:
        remedy = 'send {"kind": "slow", "amount": 10}; kinds are down, slow, losing, lagging, throttled and failing'
        raise RefusalError(400, "body", str(error) or "nested too deeply", remedy) from None


def _json(body: Struct) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
