"""The process that runs agents: one for each configuration, none of which waits for another."""

import signal
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from engine.agent import kubeconfigs
from engine.agent.checkpoint import Checkpoint
from engine.agent.configuration import Configuration
from engine.agent.kubeconfigs import Access
from engine.agent.member import MemberAgent, Settings

_log = structlog.get_logger("agent")


async def run(configurations: Sequence[Configuration], checkpoint: Path, settings: Settings) -> None:
    """Serves all clusters until SIGTERM or SIGINT, or until all of them have left.

    Raises kubeconfigs.KubeconfigError or OSError where one of them can't even be begun with.
    """
    accesses = [await anyio.to_thread.run_sync(access, each) for each in configurations]
    kept = await anyio.to_thread.run_sync(Checkpoint, checkpoint)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            async with anyio.create_task_group() as agents:
                for configuration, reached in zip(configurations, accesses, strict=True):
                    agent = MemberAgent(configuration, reached, kept, settings)
                    _log.info("serving", cluster=configuration.cluster, api=reached.server)
                    agents.start_soon(agent.run)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(kept.close)


def access(configuration: Configuration) -> Access:
    """How the member of a configuration is reached; blocks. Raises KubeconfigError or OSError."""
    if not configuration.kubeconfig:
        return kubeconfigs.in_pod("https://kubernetes.default.svc")
    return kubeconfigs.read(Path(configuration.kubeconfig), configuration.context)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            _log.info("stopping")
            scope.cancel()
            return
