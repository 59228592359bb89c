"""The observer of another control plane, as a part of a server."""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine import diagnostics
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.log import port
from engine.observer.observer import Observer

SOURCE: Final = "/observed/"
"""Begins the source of observed events; the name of the control plane follows."""

_log = diagnostics.logger(__name__)


class Observed(Struct, frozen=True):
    """A control plane to observe: its name in the log, and the access to its API."""

    name: str
    access: Access


async def run(
    log: port.NumberedLog,
    observed: Observed | None,
    clock_ms: Callable[[], int],
    stopping: asyncio.Event,
) -> None:
    """Observe a control plane, if any, until the process stops."""
    if observed is None:
        return
    api = MemberApi(observed.access)
    observer = Observer(api, log, SOURCE + observed.name, clock_ms)
    _log.info("observing", control_plane=observed.name, url=observed.access.server)
    running = asyncio.create_task(observer.run())
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        running.cancel()
        stopped.cancel()
        await asyncio.gather(running, stopped, return_exceptions=True)
        await api.aclose()
