"""The observer of another control plane, as a part of a server."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from engine import diagnostics
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.log import port
from engine.observer import shadow
from engine.observer.observer import Observer

SOURCE: Final = "/observed/"
"""Begins the source of observed events; the name of the control plane follows."""

_log = diagnostics.logger(__name__)


class Observed(Struct, frozen=True):
    """A control plane to observe: its name in the log, and the access to its API."""

    name: str
    access: Access


class Observing(Collector):
    """The observer of a control plane; it also provides its metrics."""

    def __init__(self, log: port.NumberedLog, observed: Observed, clock_ms: Callable[[], int]) -> None:
        self._observed = observed
        self._api = MemberApi(observed.access)
        self._observer = Observer(self._api, log, SOURCE + observed.name, clock_ms)

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "reballast_observer_decisions",
            "Decisions of the observed scheduler, by verdict.",
            labels=["verdict"],
        )
        for verdict in shadow.VERDICTS:
            family.add_metric([verdict], self._observer.compared.get(verdict, 0))
        yield family
        yield CounterMetricFamily(
            "reballast_observer_changes",
            "Changes of the observed control plane that were appended.",
            value=self._observer.appended,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Observe until the process stops. Raises port.LogError."""
        _log.info("observing", control_plane=self._observed.name, url=self._observed.access.server)
        running = asyncio.create_task(self._observer.run())
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            stopped.cancel()
            await asyncio.gather(running, stopped, return_exceptions=True)
            await self._api.aclose()
