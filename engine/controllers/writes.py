"""Writes of the server's controllers: like those of clients, with the controller as the field manager."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Catalogue, Resource
from engine.log.port import AFTER_FAILURE_S, LogError, NumberedLog, OutcomeUnknownError
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


class Objects(Protocol):
    """The objects of the control plane, as clients see them."""

    async def catalogue(self) -> Catalogue:
        """The kinds that are served now."""
        ...

    async def current(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """One object, None if there is none, with all writes that this server answered."""
        ...


async def follow(
    reads: ReadSide,
    turn: Callable[[int], Awaitable[int]],
    due_ms: Callable[[], int | None],
    clock_ms: Callable[[], int],
    on_failure: Callable[[str], None],
) -> None:
    """Carry out turns of a controller until the server stops; after a failed read or append start again.

    A turn gets the position up to which changes are processed (negative: none) and returns the new one. The next one
    begins when there are records after that, or when the clock may have reached ``due_ms`` (None: never).
    ``on_failure`` gets the reason of a failure.
    """
    position = -1
    while not reads.stopping.is_set():
        try:
            position = await turn(position)
        except (LogError, ProjectionError) as error:
            on_failure(str(error))
            position = -1
            await asyncio.sleep(AFTER_FAILURE_S)
        await asyncio.sleep(PAUSE_SECONDS)
        due = due_ms()
        delay_s = None if due is None else times.wait_s(due, clock_ms())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await reads.is_more(position)


class ControllerWrites:
    """Writes objects; ``source`` is the CloudEvents source of the written events."""

    def __init__(
        self, log: NumberedLog, write_api: WritePath, clock_ms: Callable[[], int], source: str
    ) -> None:
        self._log = log
        self._write_api = write_api
        self._clock_ms = clock_ms
        self._source = source

    async def change(
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
            # Not a refusal: the controller reads the current state and carries out again what is missing in it.
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
                newest=self._log.last_number(),
                tolerated=self._write_api.tolerated,
            )
            with contextlib.suppress(AheadError):
                return await self._write_api.change(mutation(writer), source=self._source)
            # The object was written after ``newest`` was read. Read up to the end of the log, so that the next
            # attempt includes that write.
            await self._log.newest()
        raise status_objects.conflict(resource, target.name)
