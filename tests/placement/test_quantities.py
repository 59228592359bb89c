"""Quantities are exact, and rounded up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.values import quantity


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("0", 0, 0),
        ("1", 1_000, 1),
        (2, 2_000, 2),
        (0.5, 500, 1),
        ("250m", 250, 1),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("1500m", 1_500, 2),
        ("1.3", 1_300, 2),
        (".5", 500, 1),
        ("5.", 5_000, 5),
        ("+3", 3_000, 3),
        ("-1.5", -1_500, -1),
        ("1k", 1_000_000, 1_000),
        ("3e2", 300_000, 300),
        ("3E2", 300_000, 300),
        ("3E", 3 * 10**21, 3 * 10**18),
        ("12e-1", 1_200, 2),
        ("1Ki", 1_024_000, 1_024),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
        ("10Ei", 10 * 1024**6 * 1_000, 10 * 1024**6),
    ],
)
def test_milli_and_whole_units_are_parsed(text: quantity.Quantity, milli: int, whole: int) -> None:
    nano = quantity.nano_units(text)
    assert (quantity.ceil_milli(nano), quantity.ceil_whole(nano)) == (milli, whole)


@pytest.mark.parametrize(
    "text", ["", "m", ".", "1 ", "1KiB", "1ki", "0x10", "1e", "1e99", "nan", "1,5", "--1", "\u0661", "1" * 65]
)
def test_invalid_quantity_is_named_in_the_error(text: str) -> None:
    with pytest.raises(quantity.QuantityError) as refusal:
        quantity.nano_units(text)
    assert repr(text[:60])[:-1] in str(refusal.value)


@given(st.integers(-(10**24), 10**24))
def test_whole_numbers_of_any_size_are_exact(number: int) -> None:
    assert quantity.nano_units(str(number)) == number * quantity.NANO
    assert quantity.ceil_milli(quantity.nano_units(f"{number}m")) == number


@given(st.integers(0, 10**12), st.sampled_from(["n", "u", "m", ""]))
def test_units_are_rounded_up(number: int, suffix: str) -> None:
    nano = number * {"n": 1, "u": 10**3, "m": 10**6, "": 10**9}[suffix]
    whole = quantity.ceil_whole(quantity.nano_units(f"{number}{suffix}"))
    assert whole * quantity.NANO >= nano > (whole - 1) * quantity.NANO


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("11000", "11k"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1024", "1024"),
        ("0.5Ki", "512"),
        ("1536.5Ki", "1573376"),
        ("0.1Gi", "107374182400m"),
        ("12e6", "12e6"),
        ("1200e3", "1200e3"),
        ("-2000", "-2k"),
        ("0.1n", "1n"),
        ("9223372036854775807", "9223372036854775807"),
    ],
)
def test_quantity_is_written_as_kubernetes_does(text: str, written: str) -> None:
    assert quantity.canonical(text) == written


def test_bytes_are_written_with_powers_of_1024() -> None:
    assert quantity.of_nano("memory", 16 * 2**30 * quantity.NANO) == "16Gi"
    assert quantity.of_nano("cpu", 2048 * quantity.NANO) == "2048"
    assert quantity.of_nano("cpu", 250_000_000) == "250m"
