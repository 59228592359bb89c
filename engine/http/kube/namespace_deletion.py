"""Deletion of namespaces: mark the namespace, delete its contents, and remove it when it is empty.

Objects with finalizers are only marked and keep the namespace until their last finalizer is removed. A
terminating namespace accepts no new objects. Every delete that leaves it empty finishes it, so an interrupted
deletion is completed by the next one.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from engine.http.kube.control_plane import ControlPlane
from engine.writing import targets as wishes
from engine.writing.object_changes import Precheck, Removal
from engine.writing.results import Result
from engine.writing.write_api import WriteApi
from projections.port import Rows

SOURCE: Final = "/reballast/api"
_TOGETHER: Final = 256
_CONTAINED: Final = """
SELECT api_version, kind, name FROM objects WHERE namespace = ? ORDER BY api_version, kind, name
"""


class Namespaces:
    """Delete namespaces with their contents."""

    def __init__(self, door: WriteApi, plane: ControlPlane, clock_ms: Callable[[], int]) -> None:
        self._write_api = door
        self._plane = plane
        self._clock_ms = clock_ms

    async def end(self, target: wishes.Target, precheck: Precheck) -> tuple[Result, Removal]:
        """Mark a namespace and delete its contents.

        Returns the result and the removal; its ``is_marked`` is whether the namespace still exists.
        """
        marking = Removal(target=target, precheck=precheck, now_ms=self._clock_ms(), is_kept=True)
        result = await self._write_api.change(marking, dry_run=False, source=SOURCE)
        if result.problem is None:
            await self._clear(target.name)
            marking.is_marked = not await self.finish(target.name)
        return result, marking

    async def finish(self, name: str) -> bool:
        """Remove a namespace if it is marked and empty; return whether it is gone."""
        target = wishes.Target(api_version="v1", kind="Namespace", namespace="", name=name)
        if await self._contained(name):
            return False
        removal = Removal(target=target, precheck=_accept, now_ms=self._clock_ms(), is_final=True)
        result = await self._write_api.change(removal, dry_run=False, source=SOURCE)
        return result.problem is not None or result.action == "deleted"

    async def _clear(self, name: str) -> None:
        targets = [
            wishes.Target(api_version=api_version, kind=kind, namespace=name, name=inner)
            for api_version, kind, inner in await self._contained(name)
        ]
        for start in range(0, len(targets), _TOGETHER):
            batch = targets[start : start + _TOGETHER]
            removals = (Removal(target=target, precheck=_accept, now_ms=self._clock_ms()) for target in batch)
            await asyncio.gather(
                *(self._write_api.change(removal, dry_run=False, source=SOURCE) for removal in removals)
            )

    async def _contained(self, name: str) -> list[tuple[str, str, str]]:
        def ask(rows: Rows) -> list[tuple[str, str, str]]:
            return [(str(row[0]), str(row[1]), str(row[2])) for row in rows.select(_CONTAINED, (name,))]

        return await self._plane.read(ask)


def _accept(_live: dict[str, object]) -> None:
    """Precheck that accepts every object."""
