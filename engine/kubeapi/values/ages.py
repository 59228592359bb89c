"""Durations in the format of kubectl tables: ``57s``, ``3m14s``, ``2d5h``."""

from typing import Final

from events import times

UNKNOWN: Final = "<unknown>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_FORMS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""By age: upper bound, unit and its suffix, smaller unit (0: not shown) and its suffix. Bounds and units in seconds."""


def since(stamp: object, now_ms: int) -> str:
    """Return the age of an RFC 3339 timestamp at ``now_ms``; ``<unknown>`` if it is not a timestamp."""
    if not isinstance(stamp, str):
        return UNKNOWN
    try:
        return duration((now_ms - times.from_text(stamp)) // 1000)
    except ValueError:
        return UNKNOWN


def duration(seconds: int) -> str:
    """Format a duration; -1 second is shown as 0 because clocks differ, smaller values as ``<invalid>``."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    for below, unit, suffix, small, small_word in _FORMS:
        if seconds < below:
            rest = seconds % unit // small if small else 0
            return f"{seconds // unit}{suffix}" + (f"{rest}{small_word}" if rest else "")
    return f"{seconds // _YEAR}y"
