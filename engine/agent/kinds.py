"""Discovery of the kinds that a member serves: at the start, periodically, and when a kind is missing."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

import anyio

from engine.agent import messages
from engine.agent.api_errors import RefusedError
from engine.agent.call_limits import Gate
from engine.agent.discovery import Resource
from engine.agent.member_api import MemberApi
from events import clusters

_REDISCOVER_S: Final = 10.0
"""Minimum interval between discoveries for a missing kind."""

NODES: Final = ("v1", "Node")
SCALERS: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")


class Kinds:
    """The kinds of one member; ``on_known`` is called with a new report when the kinds change."""

    def __init__(self, api: MemberApi, gate: Gate, on_known: Callable[[messages.ApisReport], None]) -> None:
        self._api = api
        self._gate = gate
        self._on_known = on_known
        self._found: dict[tuple[str, str], Resource] = {}
        self._requested_s = -_REDISCOVER_S
        self._reported: messages.ApisReport | None = None
        self._lock = anyio.Lock()

    async def find(self, api_version: str, kind: str) -> Resource | None:
        """The served kind; None if it is not served. Raises ApiError."""
        resource = self._found.get((api_version, kind))
        if resource is None:
            # The lock lets concurrent lookups of a missing kind share one discovery.
            async with self._lock:
                if anyio.current_time() >= self._requested_s + _REDISCOVER_S:
                    await self.refresh()
            resource = self._found.get((api_version, kind))
        return resource

    async def find_anywhere(self, api_version: str, kind: str) -> Resource | None:
        """The served kind, even if discovery omits it; None if its group version does not serve it. Raises ApiError."""
        resource = await self.find(api_version, kind)
        if resource is not None:
            return resource
        # Discovery omits groups whose servers do not respond.
        try:
            served = await self._gate.call(lambda: self._api.of_version(api_version))
        except RefusedError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return next((resource for resource in served if resource.kind == kind), None)

    async def find_watched(self, api_version: str, kind: str) -> Resource | None:
        """The served kind; None if it does not support watches or its discovery is forbidden. Raises ApiError."""
        try:
            resource = await self.find_anywhere(api_version, kind)
        except RefusedError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            return None
        return resource if resource is not None and resource.watched else None

    async def refresh(self) -> None:
        """Run discovery; raises ApiError."""
        listed = await self._gate.call(self._api.discover)
        version = await self._gate.call(self._api.version)
        self._requested_s = anyio.current_time()
        self._found = {(resource.api_version, resource.kind): resource for resource in listed}
        report = messages.ApisReport(apis=enabled(listed), kubernetes_version=version[:64])
        if report != self._reported:
            self._reported = report
            self._on_known(report)

    def served(self) -> list[Resource]:
        """All kinds of the last discovery."""
        return list(self._found.values())


def enabled(listed: Sequence[Resource]) -> tuple[clusters.ApiKind, ...]:
    """Return the kinds by group version, in the form of ApisReport."""
    groups: dict[str, dict[str, str]] = {}
    for resource in listed:
        groups.setdefault(resource.api_version, {}).setdefault(resource.kind, resource.plural)
    return tuple(
        clusters.ApiKind(
            group_version=group,
            kinds=tuple(sorted(names)),
            names=tuple(names[kind] for kind in sorted(names)),
        )
        for group, names in sorted(groups.items())
    )
