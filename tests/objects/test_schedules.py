"""Schedules of CronJobs."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.values import schedules

NOON = "2026-03-04T12:00:30"
"""A Wednesday."""


def instant(text: str) -> int:
    return int(dt.datetime.fromisoformat(f"{text}+00:00").timestamp()) * 1_000


def text(at_ms: int | None) -> str:
    return (
        "" if at_ms is None else dt.datetime.fromtimestamp(at_ms / 1_000, dt.UTC).strftime("%Y-%m-%dT%H:%M")
    )


@pytest.mark.parametrize(
    ("schedule", "last", "following"),
    [
        ("* * * * *", "2026-03-04T12:00", "2026-03-04T12:01"),
        ("*/15 * * * *", "2026-03-04T12:00", "2026-03-04T12:15"),
        ("5/20 * * * *", "2026-03-04T11:45", "2026-03-04T12:05"),
        ("30 9-17/4 * * MON-FRI", "2026-03-04T09:30", "2026-03-04T13:30"),
        ("0 0 1 jan,jul *", "2026-01-01T00:00", "2026-07-01T00:00"),
        ("0 6 1 * sun", "2026-03-01T06:00", "2026-03-08T06:00"),
        ("0 6 */2 * sun", "2026-03-03T06:00", "2026-03-05T06:00"),
        ("0 6 */1 * sun", "2026-03-01T06:00", "2026-03-08T06:00"),
        ("0 0 29 2 ?", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("@hourly", "2026-03-04T12:00", "2026-03-04T13:00"),
        ("@daily", "2026-03-04T00:00", "2026-03-05T00:00"),
        ("@midnight", "2026-03-04T00:00", "2026-03-05T00:00"),
        ("@weekly", "2026-03-01T00:00", "2026-03-08T00:00"),
        ("@monthly", "2026-03-01T00:00", "2026-04-01T00:00"),
        ("@yearly", "2026-01-01T00:00", "2027-01-01T00:00"),
        ("@annually", "2026-01-01T00:00", "2027-01-01T00:00"),
        ("0 0 30 2 *", "", ""),
    ],
)
def test_last_and_next_time(schedule: str, last: str, following: str) -> None:
    parsed = schedules.parse(schedule)
    assert parsed is not None
    assert (text(parsed.last(instant(NOON))), text(parsed.next(instant(NOON)))) == (last, following)


def test_months_and_days_have_names() -> None:
    months = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "DEC")
    for number, name in enumerate(months, 1):
        assert schedules.parse(f"0 0 1 {name} *") == schedules.parse(f"0 0 1 {number} *")
    for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "Sat")):
        assert schedules.parse(f"0 0 * * {name}") == schedules.parse(f"0 0 * * {number}")


def test_schedule_follows_its_time_zone() -> None:
    parsed = schedules.parse("0 9 * * *", "Europe/Berlin")
    assert parsed is not None
    assert text(parsed.next(instant(NOON))) == "2026-03-05T08:00"
    assert text(parsed.next(instant("2026-06-01T12:00:00"))) == "2026-06-02T07:00"


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * *",
        "61 * * * *",
        "@sometimes",
        "@every 5m",
        "0 0 * foo *",
        "",
        "* sat-30 * * *",
        "mon-999999999999 * * * *",
        f"{'9' * 5_000} * * * *",
        f"*/{'9' * 5_000} * * * *",
        "jan * * * *",
        "* * * sun *",
        "5-3 * * * *",
        "* * * * fri-mon",
        "*/2/2 * * * *",
        "1-2-3 * * * *",
    ],
)
def test_unusable_schedule_has_no_moments(schedule: str) -> None:
    assert schedules.parse(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("* * * * fri-mon", "beginning of range (5) beyond end of range (1): fri-mon"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* 24 * * *", "end of range (24) above maximum (23): 24"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("jan * * * *", 'failed to parse int from jan: strconv.Atoi: parsing "jan": invalid syntax'),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/2/2 * * * *", "too many slashes: */2/2"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("* * * * mon/2,", ""),
        ("@every 5m", ""),
    ],
)
def test_faults_have_the_words_of_kubernetes(schedule: str, words: str) -> None:
    assert schedules.fault(schedule) == words


def _instants(schedule: str, after: str, count: int) -> list[str]:
    parsed = schedules.parse(schedule, "America/New_York")
    assert parsed is not None
    at_ms = instant(after)
    instants: list[int] = []
    for _ in range(count):
        following = parsed.next(at_ms)
        assert following is not None
        assert parsed.last(following + 1) == following
        assert not instants or parsed.last(following - 1) == instants[-1]
        instants.append(at_ms := following)
    return [text(instant_ms)[5:] for instant_ms in instants]


def test_repeated_hour_has_its_moments_twice() -> None:
    expected = [f"11-01T{hour:02}:{minute}" for hour in (5, 6, 7) for minute in ("00", "30")]
    assert _instants("*/30 * * * *", "2026-11-01T04:30:00", 6) == expected
    assert _instants("30 1 * * *", "2026-11-01T00:00:00", 3) == ["11-01T05:30", "11-01T06:30", "11-02T06:30"]


def test_skipped_hour_has_no_moments() -> None:
    assert _instants("30 2 * * *", "2026-03-07T12:00:00", 2) == ["03-09T06:30", "03-10T06:30"]
    assert _instants("0 1-3 * * *", "2026-03-08T00:00:00", 3) == ["03-08T06:00", "03-08T07:00", "03-09T05:00"]


def test_unknown_time_zone_has_no_moments() -> None:
    assert schedules.parse("* * * * *", "Mars/Phobos") is None
    assert schedules.parse("* * * * *", "../../etc/passwd") is None


@given(st.integers(0, 59), st.integers(0, 23), st.integers(0, 2_000_000_000))
def test_last_and_next_enclose_each_instant(minute: int, hour: int, at_s: int) -> None:
    parsed = schedules.parse(f"{minute} {hour} * * *")
    assert parsed is not None
    last, following = parsed.last(at_s * 1_000), parsed.next(at_s * 1_000)
    assert last is not None
    assert following is not None
    assert last <= at_s * 1_000 < following
    assert following - last == 86_400_000
