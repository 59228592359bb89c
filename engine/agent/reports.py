"""Send reports to the gateway in batches. A report contains the current state, not each change.

A batch with an unknown outcome is sent again under the same id, so that the gateway records it once.
"""

import uuid
from collections.abc import Callable
from typing import Final

import anyio

from engine import diagnostics
from engine.agent import messages, reconciliation
from engine.agent.agent_metrics import ClusterCounters
from engine.agent.api_errors import RefusedError, ThrottledError, UnreachableError
from engine.agent.call_limits import Backoff
from engine.agent.gateway_client import GatewayClient
from engine.agent.ledger import Ledger

_GATHER_S: Final = 0.05
"""Seconds for which changes are collected before they are sent together."""

_INVALID_REPORT: Final = frozenset({400, 413, 422})
_log = diagnostics.logger("agent")

ClusterReport = messages.CapacityReport | messages.HealthReport | messages.ApisReport


class Reporter:
    """Report one cluster. ``on_answer`` gets the gateway's answer to each batch."""

    def __init__(
        self,
        gateway: GatewayClient,
        ledger: Ledger,
        on_answer: Callable[[messages.Cluster], None],
        counts: ClusterCounters,
    ) -> None:
        self._gateway = gateway
        self._ledger = ledger
        self._on_answer = on_answer
        self._counts = counts
        self._keys: dict[str, None] = {}
        self._own: dict[type[ClusterReport], ClusterReport] = {}
        self._more = anyio.Event()
        self._boot = uuid.uuid4().hex
        self._batches = 0

    def binding_changed(self, key: str) -> None:
        """Schedule a report on a binding; nothing is sent if its state was reported already."""
        self._keys[key] = None
        self._more.set()

    def report(self, report: ClusterReport) -> None:
        """Schedule a report on the cluster; a newer one of the same type replaces it."""
        self._own[type(report)] = report
        self._more.set()

    async def run(self) -> None:
        """Send scheduled reports, forever."""
        while True:
            await self._more.wait()
            await anyio.sleep(_GATHER_S)
            self._more = anyio.Event()
            batch = self._next_batch()
            # More keys may be waiting than fit into one request.
            if self._keys:
                self._more.set()
            if batch:
                await self._send(batch)

    def _next_batch(self) -> list[messages.Report]:
        batch: list[messages.Report] = list(self._own.values())
        self._own = {}
        for key in list(self._keys)[: messages.REPORTS_MAX - len(batch)]:
            del self._keys[key]
            entry = self._ledger.get(key)
            if entry is None:
                continue
            report = reconciliation.gone_report(entry) or reconciliation.report(entry)
            if report is not None:
                batch.append(report)
        return batch

    async def _send(self, batch: list[messages.Report]) -> None:
        self._batches += 1
        batch_id = f"{self._boot}-{self._batches}"
        backoff = Backoff()
        while True:
            try:
                self._on_answer(await self._gateway.report(batch_id, batch))
            except (UnreachableError, ThrottledError) as error:
                _log.warning("gateway unreachable; retrying reports", error=str(error))
                await anyio.sleep(backoff.next_delay_s())
            except RefusedError as error:
                if error.code not in _INVALID_REPORT:
                    _log.warning("reports refused; retrying", error=str(error))
                    await anyio.sleep(backoff.next_delay_s())
                elif len(batch) == 1:
                    _log.error("report refused and dropped", error=str(error))
                    return
                else:
                    # At least one report is invalid; send them one by one so that the others are not lost.
                    for report in batch:
                        await self._send([report])
                    return
            else:
                self._sent(batch)
                return

    def _sent(self, batch: list[messages.Report]) -> None:
        self._counts.reports += len(batch)
        for report in batch:
            match report:
                case messages.WorkloadReport():
                    entry = self._ledger.get(report.key)
                    if entry is not None:
                        entry.reported = report
                        self._ledger.touch(report.key)
                        # The state may have changed while the request was sent.
                        self.binding_changed(report.key)
                case messages.GoneReport():
                    entry = self._ledger.get(report.key)
                    if entry is not None and reconciliation.gone_report(entry) == report:
                        self._ledger.forget(report.key)
                case _:
                    pass
