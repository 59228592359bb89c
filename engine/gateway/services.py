"""What the server stands on: the log, the views, the door, and who answers questions about decisions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from engine.gateway.door import Door
from engine.log.port import Log
from projections.rebuild import Moments
from projections.runner import Projector


class Inquiry(Protocol):
    """Answers from the log and the rules, not from the views."""

    async def explain(self, key: str, number: int | None) -> Struct | None:
        """Why a binding is where it is, or was at a number of the log; None where nothing was decided."""
        ...

    async def verify(self) -> Struct:
        """What the proof of the whole log gave."""
        ...


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Services:
    """The parts that the server needs; ``is_ready`` tells whether the rest of the process is."""

    log: Log
    projector: Projector
    moments: Moments
    door: Door
    inquiry: Inquiry
    token: str
    is_ready: Callable[[], bool] = _always
