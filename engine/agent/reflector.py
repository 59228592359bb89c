"""List and watch all objects of one kind in a member; resumes after interruptions."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, Protocol

import anyio

from engine import diagnostics
from engine.agent.api_errors import ExpiredError, RefusedError, ThrottledError, UnreachableError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi, Resource
from events.json_values import Json, as_text, at

_SILENT_FAILURES: Final = 3
"""The failure in a row that is logged: a server that restarts is reachable again before it."""

_REFUSED_FIRST_S: Final = 5.0
_REFUSED_LAST_S: Final = 300.0
_log = diagnostics.logger("agent")


class Follower(Protocol):
    """Receiver of a kind's objects and changes."""

    def begin(self) -> None:
        """Called before a list is requested."""
        ...

    def listed(self, items: list[Json]) -> None:
        """Called with the complete list."""
        ...

    def changed(self, value: Json, *, is_gone: bool) -> None:
        """Called when an object was created, changed, or (``is_gone``) deleted."""
        ...


async def follow(
    api: MemberApi, gate: Gate, resource: Resource, labels: str, follower: Follower, version: str = ""
) -> None:
    """Pass the objects of a kind with these labels to the follower, forever.

    With a ``version`` it begins with the changes after it, if the server still has them, and not with a list.
    """
    backoff, refused, failed = Backoff(), Backoff(_REFUSED_FIRST_S, _REFUSED_LAST_S), 0
    while True:
        try:
            if not version:
                version = await _list(api, gate, resource, labels, follower)
                refused.reset()
                failed = 0
            async for change in api.watch(resource, version, labels):
                backoff.reset()
                failed = 0
                version = as_text(at(change.object, "metadata", "resourceVersion")) or version
                if change.type != "BOOKMARK":
                    follower.changed(change.object, is_gone=change.type == "DELETED")
            # Pause also after a watch that ended normally: some servers end every watch at once.
            await anyio.sleep(backoff.again_s())
        except ExpiredError:
            version = ""
            # A server that forgets each version at once is not asked in a loop.
            await anyio.sleep(backoff.again_s())
        except UnreachableError as error:
            failed += 1
            _report_outage(resource, failed, error)
            await anyio.sleep(backoff.again_s())
        except ThrottledError as error:
            await anyio.sleep(max(error.after_s, backoff.again_s()))
        except KubeconfigError as error:
            # A token file that is being replaced, or a plugin that failed.
            _log.warning("watch failed; retrying", resource=resource.plural, error=str(error))
            await anyio.sleep(backoff.again_s())
        except RefusedError as error:
            _log.warning("watch failed; retrying", resource=resource.plural, error=str(error))
            if error.code == HTTPStatus.UNAUTHORIZED:
                # The token expired. A list instead would show only the newest of the changes meanwhile.
                await anyio.sleep(backoff.again_s())
                continue
            if error.code != HTTPStatus.FORBIDDEN:
                version = ""
            await anyio.sleep(refused.again_s())


def _report_outage(resource: Resource, failed: int, error: UnreachableError) -> None:
    """Log the failure with this number in a row, if the server is not just restarting."""
    if failed == _SILENT_FAILURES:
        _log.warning("watch interrupted; retrying", resource=resource.plural, error=str(error))


async def _list(api: MemberApi, gate: Gate, resource: Resource, labels: str, follower: Follower) -> str:
    async def ask() -> str:
        follower.begin()
        listed = await api.list(resource, labels)
        follower.listed(listed.items)
        return listed.version

    asking: Callable[[], Awaitable[str]] = ask
    return await gate.call(asking)
