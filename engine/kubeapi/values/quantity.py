"""Kubernetes quantities ("250m", "1.5Gi", "3e2") as exact integers.

A quantity is parsed to an integer number of billionths (nano units); finer digits are rounded up, as in
Kubernetes. The integers have any size, so no amount overflows or is capped.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

PODS = "pods"
"""The resource that counts pods."""

NANO = 1_000_000_000
TEXT_CHARS_MAX = 64
_EXPONENT_MAX = 40
_KIBI = 1024
_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_EXPONENTS = ("e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18")
_EXPONENT = re.compile(r"[eE][+-]?\d")
_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

Quantity: TypeAlias = str | int | float


class QuantityError(ValueError):
    """A text that is not a quantity; the message contains the text."""


@functools.lru_cache(maxsize=1 << 16)
def nano_units(quantity: Quantity) -> int:
    """Parse a quantity; return it in billionths of its unit, rounded up.

    Raises `QuantityError` if the text is malformed, longer than 64 characters, or has an exponent beyond 40.
    """
    text = str(quantity)
    form = _FORM.fullmatch(text) if len(text) <= TEXT_CHARS_MAX and text.isascii() else None
    if form is None:
        msg = f"quantity {text[:TEXT_CHARS_MAX]!r} is not a number with an optional suffix such as m, k, Ki or e3"
        raise QuantityError(msg)
    sign, whole, fraction, suffix, power = form.groups()
    fraction = fraction or ""
    if not whole and not fraction:
        msg = f"quantity {text!r} has no digits"
        raise QuantityError(msg)
    digits = int(sign + whole + fraction)
    if suffix in _BINARY:
        return _scaled(digits * _BINARY[suffix], 9 - len(fraction))
    exponent = int(power) if power else _DECIMAL.get(suffix, 0)
    if abs(exponent) > _EXPONENT_MAX:
        msg = f"quantity {text!r} has an exponent beyond {_EXPONENT_MAX}"
        raise QuantityError(msg)
    return _scaled(digits, 9 + exponent - len(fraction))


def nano_units_of(value: object) -> int | None:
    """Parse a value of any type; return it in billionths of its unit, or None if it is not a quantity."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        return nano_units(value)
    except QuantityError:
        return None


def totals(quantities: Iterable[Mapping[str, Quantity]]) -> dict[str, int]:
    """Return the sums of quantities by resource, in billionths of its unit. Raises `QuantityError`."""
    sums: dict[str, int] = {}
    for amounts in quantities:
        for resource, amount in amounts.items():
            sums[resource] = sums.get(resource, 0) + nano_units(amount)
    return sums


def texts(sums: Mapping[str, int]) -> dict[str, str]:
    """Write sums of resources, in billionths of their units, as quantities, sorted by resource."""
    return {resource: of_nano(resource, nano) for resource, nano in sorted(sums.items())}


def canonical(quantity: Quantity) -> str:
    """Write a quantity as Kubernetes does: without a fraction, and with the largest suffix that is exact.

    The new suffix has the form of the old one: power of 1024, power of 1000, or exponent. Powers of 1024 are for whole
    numbers from 1Ki on.
    Raises `QuantityError` if the text is malformed.
    """
    text, nano = str(quantity), nano_units(quantity)
    if text.endswith("i") and abs(nano) >= _KIBI * NANO and nano % NANO == 0:
        return _shortened(nano // NANO, _KIBI, ("", *_BINARY))
    return _shortened(nano, 1_000, _EXPONENTS if _EXPONENT.search(text) else _SUFFIXES)


def of_nano(resource: str, nano: int) -> str:
    """Write ``nano`` billionths of a resource's unit as a quantity, which may be longer than ``TEXT_CHARS_MAX``."""
    if counted_in_bytes(resource) and abs(nano) >= _KIBI * NANO:
        return _shortened(ceil_whole(nano), _KIBI, ("", *_BINARY))
    return _shortened(nano, 1_000, _SUFFIXES)


def _shortened(amount: int, step: int, suffixes: tuple[str, ...]) -> str:
    if amount == 0:
        return "0"
    index = 0
    while amount % step == 0 and index + 1 < len(suffixes):
        amount //= step
        index += 1
    return f"{amount}{suffixes[index]}"


def ceil_milli(nano: int) -> int:
    """Round billionths up to thousandths."""
    return -(-nano // 1_000_000)


def ceil_whole(nano: int) -> int:
    """Round billionths up to whole units."""
    return -(-nano // NANO)


def counted_in_bytes(resource: str) -> bool:
    """Return whether amounts of a resource are bytes, which are written with powers of 1024."""
    return resource in {"memory", "ephemeral-storage", "storage"} or resource.startswith("hugepages-")


def counted_units(resource: str, nano: int) -> int:
    """Convert billionths to the unit of replica estimates: milli for cpu, whole for others; rounded up."""
    return ceil_milli(nano) if resource == "cpu" else ceil_whole(nano)


def _scaled(digits: int, power: int) -> int:
    return digits * 10**power if power >= 0 else -(-digits // 10**-power)
