"""The plans of a server: a bounded number runs at a time, and the newest finished ones are kept in memory."""

import asyncio
import uuid
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.http.errors import RefusalError
from engine.http.services import Planner
from engine.http.summaries import event_name
from engine.plans import drills, questions, summaries
from engine.plans.predictions import Prediction
from engine.plans.questions import PlanError, Question
from events import clusters, codec, specs, times
from events.kube_objects import KubeObject
from events.records import Record

RUNNING_MAX: Final = questions.AT_ONCE_MAX
KEPT_MAX: Final = 50
KEPT_BYTES_MAX: Final = 64 << 20
_log: Final = diagnostics.logger("gateway")


class State(StrEnum):
    """The state of a plan."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Plan(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A plan: its state, the virtual time that has passed, and its prediction or the reason why it failed.

    ``change`` is the planned change in one line.
    """

    id: str
    change: str = ""
    state: State = State.RUNNING
    created: str = ""
    passed_ms: int = 0
    horizon_ms: int = 0
    reason: str = ""
    warnings: list[str] = []
    prediction: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Jobs:
    """Start plans, and keep finished ones until newer ones replace them.

    ``drilled`` collects the results of plans that predict an outage of a drill.
    """

    def __init__(
        self, planner: Planner, clock_ms: Callable[[], int], drilled: drills.Latest | None = None
    ) -> None:
        self._planner = planner
        self._drilled = drilled or drills.Latest()
        self._clock_ms = clock_ms
        self._plans: dict[str, Plan] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, question: Question, warnings: list[str], outage: drills.Outage | None = None) -> Plan:
        """Start a plan; ``outage`` is the outage that it predicts for a drill, None for another plan.

        Raises RefusalError if too many plans are running.
        """
        if len(self._tasks) >= RUNNING_MAX:
            reason = f"{RUNNING_MAX} plans are running already"
            raise RefusalError(429, "plans", reason, "wait until one is done, or delete it")
        plan = Plan(
            id=str(uuid.uuid4()),
            change=text(question, outage),
            created=times.to_text(self._clock_ms()),
            horizon_ms=question.horizon_ms,
            warnings=warnings,
        )
        self._plans[plan.id] = plan
        task = self._tasks[plan.id] = asyncio.create_task(self._run(plan, question, outage))
        task.add_done_callback(lambda _: self._tasks.pop(plan.id, None))
        return plan

    def get(self, plan_id: str) -> Plan:
        """Return a plan; raises RefusalError if it is unknown or no longer kept."""
        plan = self._plans.get(plan_id)
        if plan is None:
            reason = "the plan does not exist, or newer plans have replaced it"
            raise RefusalError(404, "id", reason, "create the plan again")
        return plan

    def all(self) -> list[Plan]:
        """Return the kept plans, oldest first."""
        return list(self._plans.values())

    async def delete(self, plan_id: str) -> None:
        """Cancel a plan if it is running, and drop it; raises RefusalError if it is unknown."""
        self.get(plan_id)
        if task := self._tasks.get(plan_id):
            task.cancel()
            await asyncio.wait([task])
        self._plans.pop(plan_id, None)

    async def _run(self, plan: Plan, question: Question, outage: drills.Outage | None) -> None:
        def progress(passed_ms: int) -> None:
            plan.passed_ms = passed_ms

        try:
            prediction = await self._planner.predict(question, progress)
            if outage is not None:
                result, number = await asyncio.to_thread(_result, outage, prediction)
                self._drilled.take(result, number, self._clock_ms())
        except PlanError as error:
            plan.state, plan.reason = State.FAILED, str(error)
        except Exception:  # noqa: BLE001  # else the plan would stay RUNNING
            _log.exception("plan failed", plan=plan.id)
            plan.state, plan.reason = State.FAILED, "internal error; see the server log"
        else:
            plan.state, plan.prediction = State.DONE, msgspec.Raw(prediction)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        done = [plan for plan in self._plans.values() if plan.state != State.RUNNING]
        size = sum(map(_size, done))
        while done[1:] and (len(done) > KEPT_MAX or size > KEPT_BYTES_MAX):
            oldest = done.pop(0)
            size -= _size(oldest)
            del self._plans[oldest.id]


def _size(plan: Plan) -> int:
    predicted = 0 if plan.prediction is msgspec.UNSET else len(bytes(plan.prediction))
    return predicted + sum(map(len, plan.warnings))


def _result(outage: drills.Outage, answer: bytes) -> tuple[drills.Result, int]:
    """Return the drill result of an outage, and the sequence number at which its prediction starts."""
    prediction = msgspec.json.decode(answer, type=Prediction)
    return drills.result(outage, prediction), prediction.number


_SHOWN_MAX: Final = 3


def text(question: Question, outage: drills.Outage | None) -> str:
    """Return the change in one line, as ``cluster-tainted member1 maintenance:NoExecute``.

    ``outage`` is the failure that a plan of a drill predicts.
    """
    if outage is not None:
        faults = [f"failure of {outage.domain} {outage.name}"]
    else:
        faults = [f"{failure.member} {failure.kind}" for failure in question.failures]
    events = [_event(hypothetical.record) for hypothetical in question.inputs[:_SHOWN_MAX]]
    more = len(question.inputs) + len(faults) - _SHOWN_MAX
    changes = ", ".join((events + faults)[:_SHOWN_MAX])
    return changes + (f" and {more} more" if more > 0 else "") or "no change"


def _event(record: Record) -> str:
    decoded = codec.decode(record)
    if not isinstance(decoded, codec.Decoded):
        return "malformed"
    match decoded.data:
        case (
            clusters.ClusterTainted(taint=clusters.Taint(key=key, effect=effect))
            | clusters.ClusterUntainted(key=key, effect=effect)
        ):
            detail = f" {key}:{effect}" if effect else f" {key}"
        case specs.TemplateApplied(manifest=manifest):
            replicas = KubeObject.from_json(manifest).at("spec", "replicas")
            detail = f" with {summaries.count(replicas, 'replica')}" if isinstance(replicas, int) else ""
        case _:
            detail = ""
    return f"{event_name(decoded.envelope.type)} {decoded.envelope.subject}{detail}"
