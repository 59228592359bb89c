"""Validation of request options: field manager, resourceVersion of lists, initial events of watches."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.patching import managed_fields

_MANAGER: Final = "fieldManager"
_MATCH: Final = "resourceVersionMatch"
EXACT: Final = "Exact"
_NOT_OLDER: Final = "NotOlderThan"


def of_manager(name: str, *, needed: bool) -> Iterator[Cause]:
    """Yield the errors of a field manager name; with ``needed`` an empty name is an error, as for apply."""
    if needed and not name:
        yield causes.required(_MANAGER, "is required for apply patch")
    if len(name.encode()) > managed_fields.MANAGER_BYTES_MAX:
        yield causes.too_long(_MANAGER, managed_fields.MANAGER_BYTES_MAX)
    for detail in managed_fields.unprintable(name):
        yield causes.invalid(_MANAGER, name, detail)


def of_list(version: str, match: str, after: str, *, initial_events: bool | None) -> Iterator[Cause]:
    """Yield the errors of list options; ``match`` is the resourceVersionMatch, ``after`` the continue token."""
    if initial_events is not None:
        yield causes.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if not match:
        return
    if not version:
        yield causes.forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
    yield from _without_pages(after)
    if match not in (EXACT, _NOT_OLDER):
        yield causes.unsupported(_MATCH, match, (EXACT, _NOT_OLDER, ""))
    elif match == EXACT and version == "0":
        yield causes.forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')


def of_watch(match: str, after: str, *, initial_events: bool | None) -> Iterator[Cause]:
    """Yield the errors of watch options; ``match`` is the resourceVersionMatch, ``after`` the continue token."""
    if initial_events is not None and match != _NOT_OLDER:
        yield causes.forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to {_NOT_OLDER}")
    if not match:
        return
    if initial_events is None:
        yield causes.forbidden(
            _MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        )
    if match != _NOT_OLDER:
        yield causes.unsupported(_MATCH, match, (_NOT_OLDER,))
    yield from _without_pages(after)


def _without_pages(after: str) -> Iterator[Cause]:
    if after:
        yield causes.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
