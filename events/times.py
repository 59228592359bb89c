"""Instants as integer milliseconds since 1970 (UTC), and their RFC 3339 text.

This module reads no clock; times are always arguments.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from events.limits import quoted

FIRST_MS: Final = -62_135_596_800_000
"""The beginning of the year 1, the first that RFC 3339 can write."""

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that RFC 3339 can write."""

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

WAIT_S_MAX: Final = 10.0
"""Maximum seconds to sleep before the clock is read again: a sleep ignores clock corrections and suspended machines."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CACHED_MAX = 4_096
_CACHED_RECENT_MAX = 1_024

# Stricter than datetime.fromisoformat, which accepts more forms in each release of Python: a record must mean
# the same to every reader at any time.
_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


_DURATION: Final = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)


def duration_ms(text: str) -> int | None:
    """Return the milliseconds of ``30m`` or ``1h30m``; None for any other text."""
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        return None
    spans = zip(match.groups(), (DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS), strict=True)
    return sum(int(count or 0) * ms for count, ms in spans)


@lru_cache(maxsize=_CACHED_RECENT_MAX)
def to_text(at_ms: int) -> str:
    """Return RFC 3339 with milliseconds, for envelopes: ``2024-05-25T09:49:51.120Z``.

    Raises OverflowError before ``FIRST_MS`` and after ``LAST_MS``.
    """
    return _at(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_seconds_text(at_ms: int) -> str:
    """Return RFC 3339 with whole seconds, as in Kubernetes objects: ``2024-05-25T09:49:51Z``.

    Raises OverflowError before ``FIRST_MS`` and after ``LAST_MS``.
    """
    return _second_text(at_ms // 1_000)


@lru_cache(maxsize=_CACHED_MAX)
def _second_text(at_s: int) -> str:
    return _at(at_s * 1_000).isoformat(timespec="seconds").replace("+00:00", "Z")


def from_text(text: str) -> int:
    """Return the milliseconds since 1970 of an RFC 3339 text; finer digits are truncated.

    Raises ValueError for any other text, including one without a time zone.
    """
    if not _RFC3339.fullmatch(text):
        message = f"{quoted(text)} is no instant; write it as 2024-05-25T09:49:51Z, with its time zone"
        raise ValueError(message)
    since = datetime.fromisoformat(text.upper()) - _EPOCH
    at_ms = since.days * DAY_MS + since.seconds * 1_000 + since.microseconds // 1_000
    if not FIRST_MS <= at_ms <= LAST_MS:
        message = f"{text!r} is outside of the years 1 to 9999 (UTC)"
        raise ValueError(message)
    return at_ms


def wait_s(at_ms: int, now_ms: int) -> float:
    """Return for how many seconds to sleep before a time is compared with the clock again; 0 if it has come."""
    return min(max(at_ms - now_ms, 0) / SECOND_MS, WAIT_S_MAX)


def _at(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)
