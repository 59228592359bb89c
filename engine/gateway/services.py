"""What the server stands on: the log, the views, the door, and who answers questions about decisions."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct
from prometheus_client.registry import Collector

from engine.gateway.door import Door
from engine.gateway.sessions import NO_LOGIN, Login
from engine.log.port import NumberedLog
from events.records import StoredRecord
from projections.moments import Moments
from projections.port import Views

_AFTER_FAILURE_S: Final = 1.0


class Inquiry(Protocol):
    """Answers from the log and the rules, not from the views."""

    async def explain(self, key: str, number: int | None) -> Struct | None:
        """Why a binding is where it is, or was at a number of the log; None where nothing was decided."""
        ...

    async def verify(self, *, views: bool = False) -> Struct:
        """What the proof of the whole log gave, and with ``views`` that of the views."""
        ...


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Services:
    """The parts that the server needs; ``is_ready`` tells whether the rest of the process is.

    ``token`` is the administrator's, ``login`` what lets a browser in; ``hosts`` are names under which the server
    answers beside those of the loopback and its own address.

    ``collectors`` have the figures of the rest of the process, and are asked on the event loop.

    Set ``stopping`` when the process is told to stop: live feeds then end, with a bookmark.
    """

    log: NumberedLog
    views: Views
    moments: Moments
    door: Door
    inquiry: Inquiry
    token: str
    login: Login = NO_LOGIN
    hosts: Sequence[str] = ()
    is_ready: Callable[[], bool] = _always
    collectors: Sequence[Collector] = ()
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def catch_up(self) -> int:
        """Wait until the views know every write that any replica answered before the call; return its number.

        Raises LogError where the log can't be asked.
        """
        number = await self.log.newest()
        await self.views.wait_folded(number)
        return number

    async def known(self, after: int, limit: int) -> tuple[list[StoredRecord], int]:
        """Records behind a number that the views know, and up to which number these are all; so many at most.

        Numbers are not counts: some belong to no record, and so many records may reach beyond what the views know.
        """
        folded = self.views.folded
        found = await self.log.read_all(after, min(limit, folded - after))
        known = [record for record in found if record.number <= folded]
        return known, known[-1].number if known and len(known) == len(found) else folded

    async def is_more(self, after: int) -> bool:
        """Waits until the views know a record behind a number; False once the process stops."""
        while not self.stopping.is_set() and self.views.folded <= after:
            more = asyncio.ensure_future(self.views.wait_folded(after + 1))
            stopping = asyncio.ensure_future(self.stopping.wait())
            try:
                await asyncio.wait((more, stopping), return_when=asyncio.FIRST_COMPLETED)
                if more.done() and more.exception() is not None:
                    # The views can't go on for now; who follows them has time.
                    await asyncio.wait((stopping,), timeout=_AFTER_FAILURE_S)
            finally:
                more.cancel()
                stopping.cancel()
        return not self.stopping.is_set()
