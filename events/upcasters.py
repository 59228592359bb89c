"""Conversion of old event versions to the newest, one version at a time.

An upcaster takes the data of one version, as plain JSON values, and returns that of the next. Every
superseded version needs one; ``tests/golden`` holds a sample of each version ever written.
"""

from collections.abc import Callable, Mapping
from typing import Final

Upcaster = Callable[[dict[str, object]], dict[str, object]]
Registry = Mapping[str, tuple[str, Upcaster]]

UPCASTERS: Final[Registry] = {}
"""Upcaster and type of the next version, by CloudEvents type; empty while every type is at its first version."""


def lift(
    event_type: str,
    data: dict[str, object],
    registry: Registry = UPCASTERS,
) -> tuple[str, dict[str, object]]:
    """Return the newest type and the data converted to it; unchanged if there is no newer type.

    An upcaster may raise KeyError, TypeError, AttributeError or ValueError for data that its version never
    had; the caller treats the event as malformed.
    """
    while event_type in registry:
        event_type, upcast = registry[event_type]
        data = upcast(data)
    return event_type, data
