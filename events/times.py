"""Instants as integer milliseconds since 1970 (UTC), and their RFC 3339 text.

No clock is read here: time comes in as data.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_MS = 1000
_CACHED_MAX = 4_096


@lru_cache(maxsize=_CACHED_MAX)
def to_text(at_ms: int) -> str:
    """RFC 3339 with milliseconds, for envelopes: ``2024-05-25T09:49:51.120Z``."""
    return _at(at_ms).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % _SECOND_MS:03d}Z"


def to_seconds_text(at_ms: int) -> str:
    """RFC 3339 with whole seconds, as Kubernetes objects show it: ``2024-05-25T09:49:51Z``."""
    return _at(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_text(text: str) -> int:
    """Milliseconds of an RFC 3339 text.

    Raises ValueError for anything else, an instant without a zone included.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = f"{text!r} names no time zone; end it with Z"
        raise ValueError(message)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _at(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)
