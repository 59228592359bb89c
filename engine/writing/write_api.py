"""The write API: turn changes of objects into events, append them, and answer each one.

Each event names the version of the object that it was computed from. If another client wrote in between, the
change is computed again from the newest version, a few times. A write is answered once the views have folded
it, so the client can read it back.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.errors.status_objects import StatusError
from engine.log import port
from engine.writing import object_changes as changes
from engine.writing import operations as asks
from engine.writing import targets as wishes
from engine.writing import tracing
from engine.writing.appending import Appending, Report
from engine.writing.batching import WriteBatching
from engine.writing.execution import Answer, Turn, WriteExecution
from engine.writing.results import Result
from engine.writing.stored_objects import Views
from events.tracing import Trace
from events.validation import known_kinds as kinds


class _Change(Struct, frozen=True):
    """One queued change, with the envelope source and trace of its request."""

    operation: changes.Change | changes.StatusChange | changes.Removal | asks.AllowDeletion
    source: str
    trace: Trace


class WriteApi:
    """Turn changes of objects into events. ``clock_ms`` and ``new_id`` are the only sources of time and randomness.

    ``tolerated`` is the default toleration of failing clusters for policies that set none.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        views: Views,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        *,
        tolerated: TolerationSeconds | None = None,
    ) -> None:
        self.tolerated = tolerated or TolerationSeconds()
        self._appending = Appending(log, clock_ms, new_id)
        self._execution = WriteExecution(log, views, self._appending)
        self._batching = WriteBatching(self._change_all)

    async def change(
        self,
        operation: changes.Change | changes.StatusChange | changes.Removal | asks.AllowDeletion,
        *,
        dry_run: bool,
        source: str,
    ) -> Result:
        """Carry out one change from the Kubernetes API.

        Raises StatusError if it is refused, and the log's errors if the append fails.
        """
        if not dry_run:
            return await self._batching.submit(_Change(operation, source, tracing.current()))
        answers = await self._execution.carry_out(
            [Turn(0, operation, tracing.current())], {}, dry_run=True, source=source
        )
        return _result_or_raise(answers[0])

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Append events reported by an agent, without waiting for the views. Raises LogError."""
        await self._appending.report(batch, source)

    async def _change_all(self, group: Sequence[_Change]) -> list[Result | Exception]:
        """Carry out grouped changes; each gets its own result, and one refusal does not affect the others."""
        results: dict[int, Answer] = {}
        # One append has one envelope source, so changes are grouped by it.
        for source in dict.fromkeys(change.source for change in group):
            waiting = [
                Turn(index, change.operation, change.trace)
                for index, change in enumerate(group)
                if change.source == source
            ]
            answers = await self._execution.carry_out(waiting, {}, dry_run=False, source=source)
            results |= {turn.index: answer for turn, answer in zip(waiting, answers, strict=True)}
        return [answer for _, answer in sorted(results.items())]


def cluster_target(name: str) -> wishes.Target:
    return wishes.Target(api_version=kinds.CLUSTER_GROUP, kind="Cluster", namespace="", name=name)


def _result_or_raise(answer: Answer) -> Result:
    """Return a result; raise a refusal."""
    if isinstance(answer, StatusError):
        raise answer
    return answer
