"""The observer of another control plane, and its scheduler, as a part of a server."""

import asyncio
import hashlib
import secrets
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import anyio
import msgspec
from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine import diagnostics
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.log import port
from engine.observer import shadow
from engine.observer.observer import GATHER_S, Observer
from engine.observer.report import Report
from engine.process import stop_signals
from engine.scheduler import election, writer
from engine.scheduler.decider import Decider
from engine.scheduler.scheduler import Scheduler

SOURCE: Final = "/observed/"
"""Prefix of the CloudEvents source of observed events; the name of the control plane follows."""

_GATHER_WITH_SCHEDULER_S: Final = 0.001
"""Seconds for which changes are gathered if this process also schedules; short, since decisions wait for them."""

_FATAL: Final = (port.LogCorruptedError, port.LogCutError, port.LogMixedError)
_log = diagnostics.logger(__name__)


def identity_of(directory: Path | None) -> str:
    """Return a name for this process, under which it holds a Lease.

    With a ``directory``, which only one process uses at a time, the name is the same after a restart. A restarted
    process then need not wait until the Lease of the killed one expires.
    """
    own = secrets.token_bytes(8) if directory is None else str(directory).encode()
    return f"{socket.gethostname()}-{hashlib.sha256(own).hexdigest()[:8]}"


class Scheduling(Struct, frozen=True):
    """Settings of a scheduler: the ``schedulerName`` of its bindings, its Lease's namespace, and its rate limit."""

    name: str
    namespace: str
    writes_per_second: float = writer.WRITES_PER_SECOND


class Observed(Struct, frozen=True):
    """A control plane to observe: its name in the log, the access to its API, and whether to schedule for it."""

    name: str
    access: Access
    scheduling: Scheduling | None = None

    def observer(
        self, log: port.NumberedLog, clock_ms: Callable[[], int], directory: Path | None
    ) -> "Observing":
        """Return the observer of this control plane, which writes to ``log``; ``directory`` as in ``identity_of``."""
        return Observing(log, self, clock_ms, identity_of(directory))


class Observing(Collector):
    """The observer of a control plane, its scheduler if ``observed.scheduling`` is set, and their metrics.

    ``identity`` names this process as a holder of the Lease.
    """

    def __init__(
        self, log: port.NumberedLog, observed: Observed, clock_ms: Callable[[], int], identity: str
    ) -> None:
        self._log = log
        self._observed = observed
        self._clock_ms = clock_ms
        self._identity = identity
        self._api = MemberApi(observed.access)
        self.report = Report()
        """The comparison of the control plane's scheduling decisions with Reballast's."""
        self._begin()

    def _begin(self) -> None:
        """Create the observer and the scheduler; they rebuild their state from the log."""
        log, observed, clock_ms = self._log, self._observed, self._clock_ms
        source = SOURCE + observed.name
        scheduling = observed.scheduling
        gather_s = GATHER_S if scheduling is None else _GATHER_WITH_SCHEDULER_S
        name = "" if scheduling is None else scheduling.name
        self._observer = Observer(
            self._api, log, source, clock_ms, gather_s=gather_s, own_scheduler=name, report=self.report
        )
        self._scheduler: Scheduler | None = None
        if scheduling is None:
            return
        decider = Decider(scheduling.name)
        lease = election.LeaseName(scheduling.namespace, scheduling.name)
        self._election = election.Election(self._api, lease, self._identity, clock_ms)
        self._writer = writer.Writer(
            self._api,
            decider,
            self._election.leads,
            self._observer.history,
            scheduling.name,
            scheduling.writes_per_second,
        )
        self._scheduler = Scheduler(
            log,
            decider,
            self._writer,
            self._election,
            observed=self._observer.complete,
            source=source,
            clock_ms=clock_ms,
        )

    def collect(self) -> Iterable[Metric]:
        yield from self._observer_metrics()
        if self._scheduler is not None:
            yield from self._scheduler_metrics(self._scheduler)

    def _scheduler_metrics(self, scheduler: Scheduler) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "reballast_scheduler_leads", "1 if this process holds the Lease.", value=self._election.leads()
        )
        yield CounterMetricFamily(
            "reballast_scheduler_decisions", "Decisions of this scheduler.", value=scheduler.decisions
        )
        family = CounterMetricFamily(
            "reballast_scheduler_requests", "Requests of this scheduler, by outcome.", labels=["outcome"]
        )
        for outcome, count in msgspec.structs.asdict(self._writer.counts).items():
            family.add_metric([outcome], count)
        yield family

    def _observer_metrics(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "reballast_observer_decisions",
            "Decisions of the observed scheduler, by verdict.",
            labels=["verdict"],
        )
        for verdict in shadow.VERDICTS:
            family.add_metric([verdict], self.report.verdicts[verdict])
        yield family
        yield CounterMetricFamily(
            "reballast_observer_changes",
            "Changes of the observed control plane that were appended.",
            value=self._observer.appended,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Observe until the process stops; after a failed read or append rebuild the state from the log and continue.

        Raises the errors of ``_FATAL`` in an ExceptionGroup.
        """
        _log.info("observing", control_plane=self._observed.name, url=self._observed.access.server)
        try:
            while not stopping.is_set():
                try:
                    await self._observe(stopping)
                except* port.LogError as group:
                    if group.subgroup(_FATAL) is not None:
                        raise
                    # It is unknown whether the last changes and decisions were appended, so rebuild the state from the
                    # log.
                    _log.warning("observing stalled", reason=_reason(group))
                    self._begin()
                # Wait outside the handler: in it, ``except*`` would wrap a cancellation in an ExceptionGroup.
                with anyio.move_on_after(port.AFTER_FAILURE_S):
                    await stopping.wait()
        finally:
            await self._api.aclose()

    async def _observe(self, stopping: asyncio.Event) -> None:
        """Run the observer and the scheduler until ``stopping`` is set or one of them fails."""
        parts = [self._observer.run()]
        if self._scheduler is not None:
            parts.append(self._scheduler.run())
        await stop_signals.until_set(stopping, *parts)


def _reason(group: ExceptionGroup[port.LogError]) -> str:
    """Return the message of the first error in nested groups."""
    first = group.exceptions[0]
    return _reason(first) if isinstance(first, ExceptionGroup) else str(first)
