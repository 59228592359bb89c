"""Base of the server's controllers: they follow the views and write as clients do, each as its own field manager."""

import abc
import asyncio
import contextlib
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, Protocol

from engine import diagnostics
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Catalogue, Resource
from engine.log.port import AFTER_FAILURE_S, LogError, OutcomeUnknownError
from engine.writing.edits.objects import Writer
from engine.writing.edits.preconditions import AheadError
from engine.writing.mutations import Mutation, Problem, Target, Verdict, Written
from engine.writing.read_side import ReadSide
from engine.writing.write_api import WritePath
from events import times
from events.kube_objects import KubeObject
from projections.port import ProjectionError

PAUSE_SECONDS: Final = 0.2
"""Pause of a controller between two reads of the views, so that a busy log does not cause a read per record."""

_ATTEMPTS: Final = 5
_log: Final = diagnostics.logger("engine.controllers")


class Objects(Protocol):
    """The objects of the control plane, as clients see them."""

    async def catalogue(self) -> Catalogue:
        """The kinds that are served now."""
        ...

    async def current(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """One object, with all writes to which this server has responded; None if the object does not exist."""
        ...


class Access(NamedTuple):
    """Reads and writes of a controller; ``clock_ms`` returns the time in milliseconds since 1970."""

    reads: ReadSide
    objects: Objects
    write_api: WritePath
    clock_ms: Callable[[], int]


class Controller(abc.ABC):
    """Follows the views and writes objects; call ``run`` once.

    ``SOURCE`` is the CloudEvents source of the written events, ``ACTIVITY`` names the work in log lines.
    """

    SOURCE: ClassVar[str]
    ACTIVITY: ClassVar[str]

    def __init__(self, access: Access) -> None:
        self._reads, self._objects, self._write_api, self._clock_ms = access

    @abc.abstractmethod
    async def turn(self, after: int) -> int:
        """Process the changes after a sequence number (negative: everything); return the last one that is processed.

        Raises LogError and ProjectionError.
        """

    def due_ms(self) -> int | None:
        """Return when the next turn is due even without a change, in milliseconds since 1970; None for never."""
        return None

    async def run(self) -> None:
        """Carry out turns until the server stops; after a failed read or append start again."""
        reads, position = self._reads, -1
        while not reads.stopping.is_set():
            try:
                position = await self.turn(position)
            except (LogError, ProjectionError) as error:
                _log.warning("controller stalled", activity=self.ACTIVITY, error=str(error))
                position = -1
                await asyncio.sleep(AFTER_FAILURE_S)
            await asyncio.sleep(PAUSE_SECONDS)
            due = self.due_ms()
            delay_s = None if due is None else times.wait_s(due, self._clock_ms())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await reads.is_more(position)

    async def carry_out(
        self, resource: Resource, target: Target, manager: str, mutation: Callable[[Writer], Mutation]
    ) -> str:
        """Carry out a mutation of an object; return why it was refused, or an empty text.

        Raises LogError, also if the outcome is unknown, and ProjectionError.
        """
        try:
            answer = await self._changed(resource, target, manager, mutation)
        except StatusError as error:
            return error.message
        if isinstance(answer, Problem) and answer.verdict == Verdict.UNKNOWN:
            # An unknown outcome is no refusal: the controller must read the current state and repeat what is missing
            # there.
            raise OutcomeUnknownError(answer.reason)
        return answer.reason if isinstance(answer, Problem) else ""

    async def _changed(
        self, resource: Resource, target: Target, manager: str, mutation: Callable[[Writer], Mutation]
    ) -> Written | Problem:
        for _ in range(_ATTEMPTS):
            writer = Writer(
                resource=resource,
                namespace=target.namespace,
                name=target.name,
                manager=manager,
                now_ms=self._clock_ms(),
                validation="Ignore",
                newest=self._reads.log.last_number(),
                tolerated=self._write_api.tolerated,
            )
            with contextlib.suppress(AheadError):
                return await self._write_api.change(mutation(writer), source=self.SOURCE)
            # The object was written after ``newest`` was read. Read up to the end of the log, so that the next
            # attempt includes that write.
            await self._reads.log.newest()
        raise status_objects.conflict(resource, target.name)
