"""Dry runs with a forecast of the write's effect, for objects that request it by an annotation."""

from collections.abc import Callable, Sequence
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from engine.http.services import Services
from engine.plans import summaries
from engine.plans.predictions import Prediction
from engine.plans.questions import Input, PlanError, Question
from engine.writing.mutations import Target
from events import shapes
from events.kube_objects import KubeObject

ANNOTATION: Final = "reballast.io/plan"
RUNNING_MAX: Final = 2
_TIMEOUT_S: Final = 25
"""Clients of the Kubernetes API give up after 30 s or more."""

_BUSY: Final = "plan: too many plans are running; try again"


class Forecasts:
    """Warnings with the predicted effect of a dry run; the number of concurrent predictions is bounded."""

    def __init__(self, services: Services, clock_ms: Callable[[], int]) -> None:
        self._services = services
        self._clock_ms = clock_ms
        self._running = 0

    async def warnings(
        self, value: KubeObject, target: Target, events: Sequence[shapes.Event], source: str
    ) -> tuple[str, ...]:
        """Return warnings with the effect of the events that would write an object; none without its annotation."""
        if value.annotations.get(ANNOTATION) != "true":
            return ()
        if self._running == RUNNING_MAX:
            return (_BUSY,)
        self._running += 1
        try:
            with anyio.fail_after(_TIMEOUT_S):
                return (f"plan: {await self._summary(target, events, source)}",)
        except TimeoutError:
            return (f"plan: not finished after {_TIMEOUT_S} s; use reballast plan",)
        except PlanError as error:
            return (f"plan: {error}",)
        finally:
            self._running -= 1

    async def _summary(self, target: Target, events: Sequence[shapes.Event], source: str) -> str:
        records = self._services.write_api.records_of(target, events, source)
        inputs = tuple(Input(record=record) for record in records)
        question = Question(began_ms=self._clock_ms(), inputs=inputs)
        encoded = await self._services.planner.predict(question, lambda _: None)
        prediction = await anyio.to_thread.run_sync(_decode, encoded)
        return summaries.summary(prediction)


_decode: Final = msgspec.json.Decoder(Prediction).decode
