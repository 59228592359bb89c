"""Schedules of CronJobs: five fields, or a word such as ``@hourly``, in a time zone.

As in Kubernetes (robfig/cron), a day matches if both the day of the month and the day of the week match. If both fields
are restricted, one match suffices; a step such as ``*/2`` counts as a restriction. When the clock changes, a skipped
local time never matches, and a repeated local time matches twice.
"""

import datetime as dt
import zoneinfo
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_NAMED_SCHEDULES: Final = {
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

_ZONES: Final = frozenset(zoneinfo.available_timezones())
"""The names of the time zones. They too are read from files when this module is imported."""

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
            instants = _instants(day, self.hours, self.minutes, zone)
            yield from instants[::direction]

    def _matches(self, day: dt.date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_day_free or self.is_weekday_free:
            return in_month and in_week
        return in_month or in_week


class _Field(Struct, frozen=True):
    """First and last value of a field, and the names of its values from the first one on."""

    first: int
    last: int
    names: tuple[str, ...] = ()


class _Values(Struct, frozen=True, gc=False):
    """The values of a field; ``is_free`` if they are not restricted."""

    values: frozenset[int]
    is_free: bool


_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))
"""Minutes, hours, days of the month, months, and days of the week (0 is Sunday)."""


class _ScheduleError(ValueError):
    """A schedule that cannot be read; the message is that of Kubernetes."""


def parse(text: str, zone: str = "") -> Schedule | None:
    """Return a schedule in a time zone, UTC by default; None if it is invalid, ``@every``, or the zone is unknown."""
    if text.startswith(_EVERY) or not is_zone(zone or "UTC"):
        return None
    try:
        minutes, hours, days, months, weekdays = _read(text)
    except _ScheduleError:
        return None
    return Schedule(
        tuple(sorted(minutes.values)),
        tuple(sorted(hours.values)),
        days.values,
        months.values,
        weekdays.values,
        days.is_free,
        weekdays.is_free,
        zone or "UTC",
    )


def fault(text: str) -> str:
    """Return the error of a schedule in the words of Kubernetes, or an empty string."""
    if text.startswith(_EVERY):
        return ""
    try:
        _read(text)
    except _ScheduleError as error:
        return str(error)
    return ""


def is_zone(name: str) -> bool:
    """Return whether a time zone is known."""
    return name in _ZONES


def _instants(
    day: dt.date, hours: tuple[int, ...], minutes: tuple[int, ...], zone: zoneinfo.ZoneInfo
) -> list[int]:
    """Return the instants of these local times of a day, ordered, in milliseconds since 1970."""
    times = [
        dt.datetime.combine(day, dt.time(hour, minute, tzinfo=zone)) for hour in hours for minute in minutes
    ]
    if _offset(day, zone) == _offset(day + dt.timedelta(days=1), zone):
        return [int(time.timestamp()) * _MS for time in times]
    # The clock changes on this day: each time exists once, twice (``fold``) or not at all.
    instants = {
        int(time.replace(fold=fold).timestamp())
        for time in times
        for fold in (0, 1)
        if _exists(time.replace(fold=fold))
    }
    return [instant * _MS for instant in sorted(instants)]


def _offset(day: dt.date, zone: zoneinfo.ZoneInfo) -> dt.timedelta | None:
    return dt.datetime.combine(day, dt.time(tzinfo=zone)).utcoffset()


def _exists(time: dt.datetime) -> bool:
    """Return whether a local time exists; a change of the clock skips some local times."""
    returned = time.astimezone(_UTC).astimezone(time.tzinfo)
    return returned.replace(tzinfo=None) == time.replace(tzinfo=None)


def _read(text: str) -> list[_Values]:
    """Return the values of the fields; raises _ScheduleError."""
    if text.startswith("@") and text not in _NAMED_SCHEDULES:
        raise _ScheduleError(f"unrecognized descriptor: {text}")
    parts = _NAMED_SCHEDULES.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise _ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    return [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]


def _values(part: str, field: _Field) -> _Values:
    values: set[int] = set()
    is_free = False
    for item in filter(None, part.split(",")):
        span, *steps = item.split("/")
        low, *highs = span.split("-")
        is_any = low in _ANY
        begin = field.first if is_any else _number(low, field.names, field.first)
        end = field.last if is_any else begin
        if len(highs) > 1 and not is_any:
            raise _ScheduleError(f"too many hyphens: {item}")
        if highs and not is_any:
            end = _number(highs[0], field.names, field.first)
        if len(steps) > 1:
            raise _ScheduleError(f"too many slashes: {item}")
        step = _number(steps[0]) if steps else 1
        if steps and not highs:
            end = field.last
        if begin < field.first:
            raise _ScheduleError(f"beginning of range ({begin}) below minimum ({field.first}): {item}")
        if end > field.last:
            raise _ScheduleError(f"end of range ({end}) above maximum ({field.last}): {item}")
        if begin > end:
            raise _ScheduleError(f"beginning of range ({begin}) beyond end of range ({end}): {item}")
        if not step:
            raise _ScheduleError(f"step of range should be a positive number: {item}")
        values.update(range(begin, end + 1, step))
        is_free = is_free or (is_any and step == 1)
    return _Values(frozenset(values), is_free)


def _number(text: str, names: tuple[str, ...] = (), first: int = 0) -> int:
    """Return the value of a number, or of a name; the first name has the value ``first``."""
    name = text.lower()
    if name in names:
        return names.index(name) + first
    # ``int`` refuses texts of thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX:
        return int(text)
    raise _ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
