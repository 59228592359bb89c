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
        ("0 6 */2 * sun", "2026-03-01T06:00", "2026-03-15T06:00"),
        ("0 0 29 2 ?", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("@weekly", "2026-03-01T00:00", "2026-03-08T00:00"),
        ("0 0 30 2 *", "", ""),
    ],
)
def test_last_and_next_moment(schedule: str, last: str, following: str) -> None:
    parsed = schedules.parse(schedule)
    assert parsed is not None
    assert (text(parsed.last(instant(NOON))), text(parsed.next(instant(NOON)))) == (last, following)


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
    ],
)
def test_unusable_schedule_has_no_moments(schedule: str) -> None:
    assert schedules.parse(schedule) is None


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
