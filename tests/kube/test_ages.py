"""Formatting of ages, at the limits of each format."""

import pytest

from engine.kubeapi.values import ages

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (57, "57s"),
        (119, "119s"),
        (120, "2m"),
        (3 * MINUTE + 14, "3m14s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (8 * HOUR, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY + 5 * HOUR, "2d5h"),
        (3 * DAY, "3d"),
        (12 * DAY, "12d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR + 30 * DAY, "2y30d"),
        (9 * YEAR + 30 * DAY, "9y"),
    ],
)
def test_durations_are_formatted_as_by_kubectl(seconds: int, words: str) -> None:
    assert ages.duration(seconds) == words


def test_age_counts_from_a_timestamp() -> None:
    assert ages.since("1970-01-01T00:00:10Z", 67_900) == "57s"
    assert ages.since(None, 0) == ages.since("yesterday", 0) == "<unknown>"
