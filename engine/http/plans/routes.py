"""The routes of plans, under ``/api/v1/plans``."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine import loop_share
from engine.http import incoming_requests
from engine.http.errors import RefusalError
from engine.http.plans import planned_requests
from engine.http.plans.jobs import Jobs, Plan
from engine.http.query import parameters
from engine.http.query.api_routes import PREFIX, ApiRoute, answer
from engine.http.query.view_reads import Reader
from engine.http.services import Services
from engine.log import reading
from engine.plans import drills, questions
from engine.plans.questions import Failure, Input
from engine.writing.planned_writes import PlannedWrites
from engine.writing.read_side import ReadSide
from engine.writing.write_api import ProjectedObjects, WriteApi
from events import codec, decisions, keys, topics
from projections import autoscaling, query
from projections.as_of_views import AsOfViews
from projections.port import Rows, Tables

BODY_BYTES_MAX: Final = 16 << 20
FAILURES_BYTES_MAX: Final = 1 << 20
"""Maximum size of the failures, and of the outage, of a plan: each MiB of them takes 40 ms to decode."""

_NANOS: Final = 1_000_000
_LOOK_BACK: Final = 2_000
"""Number of records before a sequence number in which a step is searched; doubled until one is found."""


class PlanRequest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A change to plan: requests to the Kubernetes API, in order, and failures of simulated members.

    ``outage`` is the failure of one failure domain, with all its clusters. A drill makes a plan for each outage; the
    results of plans that start at the same log number are shown together. ``horizon_ms`` is the virtual time to look
    ahead, in milliseconds. With ``as_of`` the change is made at an earlier position of the log, and its requests are
    computed from the objects at that position.
    """

    requests: Annotated[
        list[planned_requests.PlannedRequest], Meta(max_length=planned_requests.REQUESTS_MAX)
    ] = []
    failures: list[Failure] = []
    outage: drills.Outage | None = None
    horizon_ms: Annotated[int, Meta(ge=0, le=questions.HORIZON_MS_MAX)] = questions.HORIZON_MS
    as_of: parameters.AsOf = ""


class _Parts(Struct, frozen=True):
    """The parts of a plan request that may be large, not decoded yet."""

    requests: msgspec.Raw = msgspec.Raw(b"[]")
    failures: msgspec.Raw = msgspec.Raw()
    outage: msgspec.Raw = msgspec.Raw()


# msgspec checks the length of a list only after decoding all of it. Decoding blocks the event loop, even in a thread,
# because it holds the GIL. Decoding an array into a struct stops at the first item that has no field.
_REQUESTS: Final = msgspec.defstruct(
    "_Requests",
    [(f"request{index}", msgspec.Raw, msgspec.Raw()) for index in range(planned_requests.REQUESTS_MAX)],
    array_like=True,
    forbid_unknown_fields=True,
)


class PlanList(Struct, frozen=True, kw_only=True):
    """The kept plans without their predictions, oldest first."""

    items: Sequence[Plan]


ROUTES: Final = (
    ApiRoute(
        method="POST",
        path="/plans",
        operation="makePlan",
        summary="Start a prediction of the effect of a change; nothing is written.",
        gives=Plan,
        request=PlanRequest,
        status=202,
        refusals=(400, 413, 422, 429),
    ),
    ApiRoute(
        path="/plans",
        operation="plans",
        summary="List the kept plans, without their predictions.",
        gives=PlanList,
        refusals=(404,),
    ),
    ApiRoute(
        path="/plans/{id}",
        operation="plan",
        summary="Show a plan: its progress, then its prediction.",
        gives=Plan,
        refusals=(404,),
    ),
    ApiRoute(
        method="DELETE",
        path="/plans/{id}",
        operation="deletePlan",
        summary="Cancel and delete a plan.",
        gives=None,
        status=204,
        refusals=(404,),
    ),
)


class _Plans:
    """Request handlers for plans."""

    def __init__(
        self,
        reads: ReadSide,
        past: AsOfViews,
        write_api: WriteApi,
        planning_api: planned_requests.PlanningApi,
        jobs: Jobs,
    ) -> None:
        self._log = reads.log
        self._past = past
        self._write_api = write_api
        self._planning = planning_api
        self._reader = Reader(reads, past)
        self._jobs = jobs
        self.by_operation: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "makePlan": self._make,
            "plans": self._list,
            "plan": self._show,
            "deletePlan": self._delete,
        }

    async def _make(self, request: Request) -> Response:
        try:
            body = await incoming_requests.read_body(request, BODY_BYTES_MAX)
            # Each decoding step blocks the loop for up to 60 ms, even in a thread; other tasks run between the steps.
            plan_request = await loop_share.in_thread_if_large(len(body), _decoded, body)
        except incoming_requests.TooLargeError as error:
            raise RefusalError(413, "body", str(error), "plan a smaller change") from None
        except (msgspec.MsgspecError, RecursionError) as error:
            raise RefusalError(400, "body", str(error) or "nested too deeply", "see /openapi.json") from None
        _check_times(plan_request)
        number = await self._reader.resolve(plan_request.as_of)
        async with self._planned_writes(number) as writes:
            records, warnings = await planned_requests.records_of(
                plan_request.requests, writes, self._planning, request.headers["authorization"]
            )
        question = questions.Question(
            began_ms=now_ms() if number is None else await self._time_of(number),
            number=number,
            inputs=tuple(Input(record=record) for record in records),
            failures=(*plan_request.failures, *(plan_request.outage.failures if plan_request.outage else ())),
            horizon_ms=plan_request.horizon_ms,
            autoscaled=await self._reader.read(number, _autoscaled) | _planned_autoscaled(writes),
        )
        return answer(self._jobs.start(question, warnings, plan_request.outage), 202)

    @asynccontextmanager
    async def _planned_writes(self, number: int | None) -> AsyncGenerator[PlannedWrites]:
        """Provide the write API of a plan, on the objects as of a sequence number; None for the current objects."""
        if number is None:
            yield self._write_api.planned()
            return
        async with self._past.at(number) as store:
            yield self._write_api.planned(ProjectedObjects(_PastViews(store, number)))

    async def _time_of(self, number: int) -> int:
        """Return the time of the last step up to a sequence number, in milliseconds since 1970.

        The times of inputs come from their producers' clocks, so they are not used.
        """
        end, portion = number, _LOOK_BACK
        while end > 0:
            start, time_ms = max(end - portion, 0), None
            async for record in reading.of_all(self._log, start, end):
                data = codec.event_of(record) if record.topic == topics.DECISIONS else None
                if isinstance(data, decisions.StepTaken):
                    time_ms = data.time_ms
            if time_ms is not None:
                return time_ms
            # Search larger portions: many inputs, or the outputs of a large step, may follow the last step.
            end, portion = start, portion * 2
        raise RefusalError(400, "asOf", "no step is recorded before this number", "use a later number")

    async def _list(self, _request: Request) -> Response:
        items = [msgspec.structs.replace(plan, prediction=msgspec.UNSET) for plan in self._jobs.all()]
        return answer(PlanList(items=items))

    async def _show(self, request: Request) -> Response:
        return answer(self._jobs.get(request.path_params["id"]))

    async def _delete(self, request: Request) -> Response:
        await self._jobs.delete(request.path_params["id"])
        return Response(status_code=204)


class _PastViews:
    """The views as of a sequence number; implements ``projections.port.Views``."""

    def __init__(self, store: Tables, number: int) -> None:
        self.store = store
        self.folded = number

    async def wait_folded(self, number: int) -> None:
        """Return at once: these views never include later records."""


def routes(services: Services, planning_api: planned_requests.PlanningApi, jobs: Jobs) -> list[Route]:
    plans = _Plans(services, services.as_of_views, services.write_api, planning_api, jobs)
    return [
        Route(PREFIX + route.path, plans.by_operation[route.operation], methods=[route.method])
        for route in ROUTES
    ]


def _decoded(body: bytes) -> PlanRequest:
    """Decode a plan request; raises RefusalError for a part that is too large, msgspec's errors, and RecursionError."""
    parts = msgspec.json.decode(body, type=_Parts)
    for name, raw in (("failures", parts.failures), ("outage", parts.outage)):
        if len(bytes(raw)) > FAILURES_BYTES_MAX:
            reason = f"has more than {FAILURES_BYTES_MAX} bytes"
            raise RefusalError(413, name, reason, "plan the failure of fewer clusters")
    msgspec.json.decode(parts.requests, type=_REQUESTS)
    return msgspec.json.decode(body, type=PlanRequest)


def _check_times(plan_request: PlanRequest) -> None:
    """Raise RefusalError if a failure begins outside of the predicted period, in which case it has no effect."""
    for index, failure in enumerate(plan_request.failures):
        if not 0 <= failure.after_ms <= plan_request.horizon_ms:
            raise RefusalError(
                422,
                f"failures[{index}].afterMs",
                f"{failure.after_ms} is not between 0 and horizonMs, {plan_request.horizon_ms}",
                "use an earlier time, or a larger horizonMs",
            )


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // _NANOS


def _autoscaled(rows: Rows) -> dict[str, str]:
    """Return the binding keys of propagated autoscalers, each with the binding key of the workload that it scales."""
    targets = autoscaling.scalers(rows, None)
    return {query.key_of(rows, key_id): _binding_key(target) for key_id, target in targets.items()}


def _planned_autoscaled(writes: PlannedWrites) -> dict[str, str]:
    """Return the binding keys of autoscalers that a plan writes, each with the binding key of its scaled workload."""
    return {
        target.key: _binding_key(autoscaling.scaled(manifest, target.namespace))
        for target, manifest in writes.manifests(autoscaling.SCALER)
    }


def _binding_key(target: autoscaling.ScaleTarget) -> str:
    return keys.binding_key(target.kind, target.namespace, target.name)
