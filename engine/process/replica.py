"""The parts behind a server: a numbered log, its views, and the simulated members of this process."""

import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from prometheus_client.registry import Collector

from engine import diagnostics
from engine.log import port
from engine.process.views import remote
from engine.simulation import member_fleet, specs
from events import topics

_log = diagnostics.logger(__name__)


def clock_ms() -> int:
    """Return the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Replica:
    """A log, its views in a directory, and its simulated members; the code that creates a replica also runs them.

    ``collectors`` have the Prometheus metrics of these parts; call their ``collect`` on the event loop.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        directory: Path,
        members: Sequence[specs.MemberSpec],
        where: str | None = None,
    ) -> None:
        self.log = log
        self.directory = directory
        self.views = remote.RemoteViews(log, directory, where)
        self.members = member_fleet.Members(log, clock_ms, members)
        self.collectors: list[Collector] = []

    def faults(self) -> list[str]:
        """Return the reasons why writes or reads fail now; empty if both work."""
        return [self.views.refusal] if self.views.refusal else []

    async def wait_ready(self) -> None:
        """On a new log, wait until the views contain the members' clusters, so that clients can use them immediately.

        On an existing log return at once: the members then take longer, since they are rebuilt from the log first.
        """
        if not self.log.ends().get((topics.CLUSTERS, 0)):
            await self.members.wait_joined()
            await self.views.wait_folded(self.log.last_number())


async def run_part(name: str, running: Awaitable[None]) -> None:
    """Await a part; if it fails, log its name with the error, because the failure stops all other parts."""
    try:
        await running
    except Exception:
        _log.exception("stopped by an error", part=name)
        raise
