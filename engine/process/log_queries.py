"""Queries answered from the log itself: explanations and proofs.

Each runs in its own thread with its own log reader, so the process continues to serve meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from engine.log import port
from engine.process import log_locations
from engine.proof import verification
from engine.reconcilers import explanation, explanation_types
from events.validation import manifests
from projections import store, view_verification
from projections.port import ProjectionError

_Result = TypeVar("_Result")


class LogInquiry:
    """Queries on the log in a directory or at an address on Kafka; implements ``http.services.Inquiry``."""

    def __init__(self, directory: Path, where: str | None = None) -> None:
        self._directory = directory
        self._place = log_locations.of_server(directory, where)

    async def explain(self, key: str, number: int | None) -> explanation_types.Explained | None:
        """Explain the newest decision on a binding, up to a sequence number if it is given; None if there is none."""
        return await self._read(lambda log: explanation.explain(log, key, number))

    async def verify(self, *, views: bool = False) -> verification.Report:
        """Prove the whole log; with ``views`` also the projection tables in the directory."""
        return await self._read(self._verify_views if views else verification.verify)

    async def _verify_views(self, log: port.NumberedLog) -> verification.Report:
        report = await verification.verify(log)
        path = self._directory / store.FILE
        if not await asyncio.to_thread(path.exists):
            message = "the directory has none, so none were proved; the server builds them from the log"
            report.notes.append(verification.Finding(kind="views", where="views", message=message))
            return report
        try:
            differences = await _differing_tables(log, path)
        except ProjectionError as error:
            message = f"they cannot be read: {error}; the server builds them again if they are deleted"
            report.findings.append(verification.Finding(kind="views", where="views", message=message))
            return report
        report.findings += [
            verification.Finding(kind="views", where=f"table {name}", message=message)
            for name, message in differences.items()
        ]
        return report

    async def _read(self, work: Callable[[port.NumberedLog], Awaitable[_Result]]) -> _Result:
        return await asyncio.to_thread(log_locations.run_on, self._place, work)


async def _differing_tables(log: port.NumberedLog, path: Path) -> dict[str, str]:
    """Return the differences between the views in a file and the log, by table; raises ProjectionError."""
    reader = await asyncio.to_thread(store.Reader, path)
    try:
        return await view_verification.differing(log, reader, manifests.check)
    finally:
        await asyncio.to_thread(reader.close)
