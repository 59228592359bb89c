"""Planned writes: computed as real ones, refused as real ones, but collected instead of appended."""

from engine.karmada.default_tolerations import TolerationSeconds
from engine.writing import tracing
from engine.writing.appending import Appending, Writing
from engine.writing.execution import Turn, WriteExecution, raised
from engine.writing.mutations import Mutation, Problem, Written
from events.records import Record


class PlannedWrites:
    """A ``write_api.Writes`` for one plan; ``records`` are those that its changes would append, in order.

    Each change is computed from the objects as they are stored, so it does not see the changes before it.
    """

    def __init__(self, execution: WriteExecution, appending: Appending, tolerated: TolerationSeconds) -> None:
        self.tolerated = tolerated
        self.records: list[Record] = []
        self._execution = execution
        self._appending = appending

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Compute one mutation; ``dry_run`` makes no difference. Raises StatusError if it is refused."""
        del dry_run
        turn = Turn(0, mutation, tracing.current(), body_bytes)
        answer = raised((await self._execution.carry_out([turn], dry_run=True, source=source))[0])
        if isinstance(answer, Written):
            writing = Writing(mutation.target, answer.mutated.events, turn.trace)
            self.records += self._appending.records_of([writing], source)
        return answer
