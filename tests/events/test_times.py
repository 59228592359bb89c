"""Conversion of instants to text and back; only RFC 3339 is parsed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import times

INSTANTS = st.integers(times.FIRST_MS, times.LAST_MS)


@given(INSTANTS)
def test_instant_round_trips_through_its_text(at_ms: int) -> None:
    assert times.from_text(times.to_text(at_ms)) == at_ms
    assert times.from_text(times.to_seconds_text(at_ms)) == at_ms - at_ms % 1000


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-05-25T09:49:51Z", 1_716_630_591_000),
        ("2024-05-25t09:49:51.12z", 1_716_630_591_120),
        ("2024-05-25T11:49:51.120999+02:00", 1_716_630_591_120),
        ("2024-05-25T09:49:51.123456789Z", 1_716_630_591_123),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("0001-01-01T00:00:00Z", times.FIRST_MS),
        ("9999-12-31T23:59:59.999Z", times.LAST_MS),
    ],
)
def test_rfc_3339_is_parsed(text: str, at_ms: int) -> None:
    assert times.from_text(text) == at_ms


def test_year_is_written_with_four_digits() -> None:
    assert times.to_text(times.FIRST_MS) == "0001-01-01T00:00:00.000Z"
    assert times.to_seconds_text(times.LAST_MS) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-05-25",
        "2024-05-25T09:49:51",  # no zone
        "2024-05-25 09:49:51Z",
        "20240525T094951Z",  # ISO 8601, which some releases of Python parse and RFC 3339 does not allow
        "2024-W21-6T09:49:51Z",
        "2024-05-25T24:00:00Z",  # midnight in some releases of Python, an error in others
        "2024-05-25T09:49:51,5Z",
        "2024-05-25T09:49:51+02:00:30",
        "2024-13-25T09:49:51Z",
        "2024-02-30T09:49:51Z",
        "\u0662024-05-25T09:49:51Z",
        "0001-01-01T00:00:00+01:00",  # before the year 1 in UTC
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.compile(r"instant|month|day|years")):
        times.from_text(text)


@given(st.text())
def test_parsing_raises_value_error_only(text: str) -> None:
    try:
        at_ms = times.from_text(text)
    except ValueError:
        return
    assert times.FIRST_MS <= at_ms <= times.LAST_MS
