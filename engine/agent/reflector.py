"""List and watch all objects of one kind in a member; resumes after interruptions."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

import anyio

from engine import diagnostics
from engine.agent.api_errors import ExpiredError, RefusedError, ThrottledError, UnreachableError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.discovery import Resource
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi
from engine.kubeapi.values import resource_versions
from events.kube_objects import KubeObject

_SILENT_FAILURES: Final = 3
"""Number of consecutive failures at which one is logged; a restarting server responds before the third."""

_REFUSED_FIRST_S: Final = 5.0
_REFUSED_LAST_S: Final = 300.0
_log = diagnostics.logger("agent")


class History:
    """The newest resourceVersion of one API server, shared by the followers of all its kinds.

    A server that was restored from a backup continues from an earlier version. A watch from a later version then
    gets neither changes nor an error until the server has passed that version. ``on_restored`` is called with the
    newest version seen before and the server's newest version, and all followers list again. Kinds of aggregated APIs
    may have versions of their own, which are not compared with those of other kinds.
    """

    def __init__(self, on_restored: Callable[[int, int], None] = lambda _seen, _now: None) -> None:
        self._on_restored = on_restored
        self.newest = 0
        """The newest version that was seen."""
        self.restored = 0
        """How often the server was restored."""
        self._newest_of: Resource | None = None
        self._apart: dict[Resource, int] = {}
        """The newest versions of kinds that do not share their versions with the others."""

    def add_version(self, version: str, resource: Resource | None = None) -> None:
        """Remember a resourceVersion if it is numeric, as in Kubernetes, and the kind that has it."""
        number = resource_versions.number(version)
        if number is None:
            return
        if resource is not None and resource in self._apart:
            self._apart[resource] = max(self._apart[resource], number)
        elif number > self.newest:
            self.newest, self._newest_of = number, resource

    async def continued(self, api: MemberApi, resource: Resource, version: str, restored: int) -> str:
        """Return the version from which a watch may continue; empty if the server was restored, so list again.

        Requests the server's newest version. ``restored`` is the value of ``self.restored`` when ``version`` was read.
        """
        if not version:
            return ""
        seen = self._apart.get(resource, self.newest)
        now = resource_versions.number(await api.newest_version(resource))
        if now is not None and now < seen and await self._is_apart(api, resource, version, seen):
            seen = self._apart[resource]
        if restored == self.restored and now is not None and now < seen:
            _log.warning("API restored from a backup; objects are listed again", seen=seen, version=now)
            if resource in self._apart:
                self._apart[resource] = now
            else:
                self.newest, self._newest_of = now, resource
            self.restored += 1
            self._on_restored(seen, now)
        return version if restored == self.restored else ""

    async def _is_apart(self, api: MemberApi, resource: Resource, version: str, seen: int) -> bool:
        """Whether resourceVersions of a kind are not comparable with those of other kinds, as with aggregated APIs.

        If the kind with the newest version still has ``seen`` or a later one, the server was not restored.
        """
        newest_of = self._newest_of
        if resource not in self._apart and newest_of is not None and newest_of != resource:
            try:
                newest = resource_versions.number(await api.newest_version(newest_of))
            except RefusedError:
                newest = None  # that kind is no longer served
            if newest is not None and newest >= seen:
                self._apart[resource] = resource_versions.number(version) or 0
        return resource in self._apart


class Follower(Protocol):
    """Receiver of a kind's objects and changes; subclasses inherit methods that do nothing."""

    def begin(self) -> None:
        """Called before a list is requested."""

    def listed(self, items: list[KubeObject], version: str, /) -> None:
        """Called with the complete list and its resourceVersion."""

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        """Called when an object was created, changed, or (``is_gone``) deleted."""

    def refused(self) -> None:
        """Called when the API refuses to list or watch the kind, also because it does not serve the kind."""


async def follow(
    api: MemberApi,
    gate: Gate,
    history: History,
    resource: Resource,
    labels: str,
    follower: Follower,
    version: str = "",
) -> None:
    """Pass the objects of a kind with these labels to the follower, forever.

    With a ``version`` it begins with the changes after that version, without a list if the server still has them.
    """
    backoff, refused, failed = Backoff(), Backoff(_REFUSED_FIRST_S, _REFUSED_LAST_S), 0
    restored = history.restored
    while True:
        try:
            version = await history.continued(api, resource, version, restored)
            if not version:
                restored = history.restored
                version = await _list(api, gate, resource, labels, follower)
                history.add_version(version, resource)
                refused.reset()
                failed = 0
            async for change in api.watch(resource, version, labels):
                backoff.reset()
                failed = 0
                version = change.object.resource_version or version
                history.add_version(version, resource)
                if change.type != "BOOKMARK":
                    follower.changed(change.object, is_gone=change.type == "DELETED")
            # Pause also after a watch that ended normally: some servers end every watch at once.
            await anyio.sleep(backoff.next_delay_s())
        except ExpiredError:
            version = ""
            # Pause: a server whose versions expire at once would otherwise get list requests in a tight loop.
            await anyio.sleep(backoff.next_delay_s())
        except UnreachableError as error:
            failed += 1
            _report_outage(resource, failed, error)
            await anyio.sleep(backoff.next_delay_s())
        except ThrottledError as error:
            await anyio.sleep(max(error.after_s, backoff.next_delay_s()))
        except KubeconfigError as error:
            # Possible causes: a token file is being replaced, or an exec plugin failed.
            _log.warning("watch failed; retrying", resource=resource.plural, error=str(error))
            await anyio.sleep(backoff.next_delay_s())
        except RefusedError as error:
            _log.warning("watch failed; retrying", resource=resource.plural, error=str(error))
            if error.code == HTTPStatus.UNAUTHORIZED:
                # The token expired. A list would skip the intermediate changes, so resume the watch.
                await anyio.sleep(backoff.next_delay_s())
                continue
            follower.refused()
            if error.code != HTTPStatus.FORBIDDEN:
                version = ""
            await anyio.sleep(refused.next_delay_s())


def _report_outage(resource: Resource, failed: int, error: UnreachableError) -> None:
    """Log an outage once, at its third consecutive failure: the first ones may only be a restart of the server."""
    if failed == _SILENT_FAILURES:
        _log.warning("watch interrupted; retrying", resource=resource.plural, error=str(error))


async def _list(api: MemberApi, gate: Gate, resource: Resource, labels: str, follower: Follower) -> str:
    async def ask() -> str:
        follower.begin()
        listed = await api.list(resource, labels)
        follower.listed(listed.items, listed.version)
        return listed.version

    return await gate.call(ask)
