"""Lifting old versions of events to the newest, one version at a time.

An upcaster takes the data of one version, as plain JSON values, and gives that of the next. There is one for
each version that was ever superseded; golden files under ``tests/golden`` hold a sample of each version that
was ever written.
"""

from collections.abc import Callable, Mapping
from typing import Final

Upcaster = Callable[[dict[str, object]], dict[str, object]]
Registry = Mapping[str, tuple[str, Upcaster]]

UPCASTERS: Final[Registry] = {}
"""By CloudEvents type: the type of the next version, and the way there. Every type is at its first version."""


def lift(
    event_type: str,
    data: dict[str, object],
    registry: Registry = UPCASTERS,
) -> tuple[str, dict[str, object]]:
    """The newest type and data that an old event is lifted to; its own where there is nothing newer.

    An upcaster may trip over data that its version never had; what it raises then (KeyError, TypeError,
    AttributeError, ValueError) says that the event is malformed.
    """
    while event_type in registry:
        event_type, upcast = registry[event_type]
        data = upcast(data)
    return event_type, data
