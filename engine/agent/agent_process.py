"""The process that runs agents, one for each configuration; they are independent of each other."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from engine import diagnostics
from engine.agent import kubeconfigs
from engine.agent.agent_metrics import AgentCollector, ClusterCounters
from engine.agent.call_limits import Backoff
from engine.agent.checkpoint import Checkpoint
from engine.agent.configuration import Configuration
from engine.agent.kubeconfigs import Access
from engine.agent.member import MemberAgent, Settings

_RESTART_FIRST_S: Final = 1.0
_RESTART_LAST_S: Final = 60.0
_log = diagnostics.logger("agent")


async def run(
    configurations: Sequence[Configuration], checkpoint: Path, settings: Settings, collector: AgentCollector
) -> None:
    """Serve all clusters until SIGTERM or SIGINT, or until all have left; counts calls and errors in ``collector``.

    Raises kubeconfigs.KubeconfigError or OSError if a configuration is not usable.
    """
    accesses = [await anyio.to_thread.run_sync(access, configuration) for configuration in configurations]
    kept = await anyio.to_thread.run_sync(Checkpoint, checkpoint)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            async with anyio.create_task_group() as agents:
                for configuration, reached in zip(configurations, accesses, strict=True):
                    counts = collector.of(configuration.cluster)
                    agents.start_soon(_serve, configuration, reached, kept, settings, counts)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(kept.close)


async def _serve(
    configuration: Configuration,
    reached: Access,
    kept: Checkpoint,
    settings: Settings,
    counts: ClusterCounters,
) -> None:
    """Serve one cluster; an unexpected exception restarts only its agent, with growing delays."""
    backoff = Backoff(_RESTART_FIRST_S, _RESTART_LAST_S)
    while True:
        began_s = anyio.current_time()
        _log.info("agent started", cluster=configuration.cluster, api=reached.server)
        try:
            await MemberAgent(configuration, reached, kept, settings, counts).run()
        except Exception:  # noqa: BLE001  # a fault in one cluster's agent must not stop the others
            _log.exception("agent failed; restarting", cluster=configuration.cluster)
            await anyio.sleep(backoff.next_delay_s(anyio.current_time() - began_s))
        else:
            return


def access(configuration: Configuration) -> Access:
    """The access to the member of a configuration; blocks. Raises KubeconfigError or OSError."""
    if not configuration.kubeconfig:
        return kubeconfigs.in_pod()
    return kubeconfigs.read(Path(configuration.kubeconfig), configuration.context)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            _log.info("stopping")
            scope.cancel()
            return
