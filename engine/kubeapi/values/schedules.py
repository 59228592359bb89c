"""Schedules of CronJobs: five fields, or a word such as ``@hourly``, in a time zone.

As in Kubernetes (robfig/cron), a day matches if the day of the month and the day of the week do; if both are
restricted, one of them suffices.
"""

import datetime as dt
import re
import zoneinfo
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_NAMES: Final = re.compile(r"[A-Za-z]{3}")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""First and last value of minutes, hours, days of the month, months, and days of the week (0 is Sunday)."""

_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_UTC: Final = zoneinfo.ZoneInfo("UTC")
"""Read from its file when this module is imported: the first use may be in an event loop, which must not wait."""
_ANY: Final = ("*", "?")
_DIGITS_MAX: Final = 18
_DAYS_MAX: Final = 366 * 8
"""Days to search for a match: a schedule without one in eight years, such as on 30 February, never matches."""

_MS: Final = 1_000


class Schedule(Struct, frozen=True, gc=False):
    """The matching values of each field.

    ``is_day_free``: the day of the month is not restricted; ``is_weekday_free``: the day of the week is not.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_day_free: bool
    is_weekday_free: bool
    zone: str

    def last(self, at_ms: int) -> int | None:
        """Return the newest matching minute up to an instant, in milliseconds since 1970; None if there is none."""
        return next((result for result in self._moments(at_ms, -1) if result <= at_ms), None)

    def next(self, after_ms: int) -> int | None:
        """Return the first matching minute after an instant, in milliseconds since 1970; None if there is none."""
        return next((result for result in self._moments(after_ms, 1) if result > after_ms), None)

    def _moments(self, from_ms: int, direction: int) -> Iterator[int]:
        """Yield matching minutes (milliseconds since 1970) from the day of ``from_ms`` on; ``direction`` is 1 or -1."""
        zone = zoneinfo.ZoneInfo(self.zone)
        first = dt.datetime.fromtimestamp(from_ms / _MS, zone).date()
        for number in range(_DAYS_MAX):
            day = first + dt.timedelta(days=number * direction)
            if not self._matches(day):
                continue
            times = [dt.time(hour, minute, tzinfo=zone) for hour in self.hours for minute in self.minutes]
            for time in times[::direction]:
                yield int(dt.datetime.combine(day, time).timestamp()) * _MS

    def _matches(self, day: dt.date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_day_free or self.is_weekday_free:
            return in_month and in_week
        return in_month or in_week


def parse(text: str, zone: str = "") -> Schedule | None:
    """Return a schedule in a time zone, UTC by default; None if it is invalid, ``@every``, or the zone is unknown."""
    if text.startswith(_EVERY) or fault(text) or not _is_zone(zone or "UTC"):
        return None
    parts = _WORDS.get(text, text).split()
    try:
        minutes, hours, days, months, weekdays = (
            _values(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True)
        )
    except ValueError:
        return None
    return Schedule(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        days,
        months,
        weekdays,
        parts[2].startswith(_ANY),
        parts[4].startswith(_ANY),
        zone or "UTC",
    )


def fault(text: str) -> str:
    """Return the error of a schedule in the words of Kubernetes, or an empty string."""
    if text.startswith("@"):
        known = text in _WORDS or text.startswith(_EVERY)
        return "" if known else f"unrecognized descriptor: {text}"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    for part, (first, last) in zip(parts, _FIELDS, strict=True):
        for item in part.split(","):
            if reason := _piece_fault(item, first, last):
                return reason
    return ""


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _values(part: str, first: int, last: int) -> frozenset[int]:
    """Return the values of a field; raises ValueError for unknown names, and for ends of a range above the maximum.

    In ranges with names, such as ``MON-FRI``, these errors are not found by ``fault``.
    """
    result: set[int] = set()
    for item in part.split(","):
        span, _, step = item.partition("/")
        begin, dash, end = ("", "", "") if span in _ANY else span.partition("-")
        low = _number(begin) if begin else first
        high = _number(end) if dash else (low if begin and not step else last)
        if high > last:
            raise ValueError(span)
        result.update(range(low, high + 1, int(step or 1)))
    return frozenset(result)


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    name = text.lower()
    return _MONTHS.index(name) + 1 if name in _MONTHS else _DAYS.index(name)


def _is_int(text: str) -> bool:
    """Whether a text is a number; ``int`` refuses texts of thousands of digits."""
    return text.isdecimal() and len(text) <= _DIGITS_MAX


def _piece_fault(piece: str, first: int, last: int) -> str:
    span, _slash, step = piece.partition("/")
    if step and not (_is_int(step) and int(step)):
        return f'failed to parse int from {step}: strconv.Atoi: parsing "{step}": invalid syntax'
    if span in _ANY:
        return ""
    begin, _dash, end = span.partition("-")
    for text in (begin, end or begin):
        if _NAMES.fullmatch(text):
            return ""
        if not _is_int(text):
            return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
    if int(begin) < first:
        return f"beginning of range ({int(begin)}) below minimum ({first}): {span}"
    if int(end or begin) > last:
        return f"end of range ({int(end or begin)}) above maximum ({last}): {span}"
    return ""
