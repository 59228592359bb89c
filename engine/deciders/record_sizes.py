"""Keep decisions within the size of a record: readers refuse a larger one, and Kafka does not store it."""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from events import limits

_ItemT = TypeVar("_ItemT")

_REST_BYTES: Final = 64 * 1024
"""Bytes of a record that are left to the fields of a decision besides its list."""


def fits(items: object) -> bool:
    """Return whether a list fits into one record with the other fields of its decision."""
    return len(msgspec.json.encode(items)) <= limits.RECORD_BYTES_MAX - _REST_BYTES


def portions(items: tuple[_ItemT, ...]) -> Iterator[tuple[_ItemT, ...]]:
    """Split a list into portions that fit into one record each; a list that fits stays whole."""
    if fits(items):
        yield items
        return
    portion: list[_ItemT] = []
    size = 0
    for item in items:
        item_size = len(msgspec.json.encode(item)) + 1
        if portion and size + item_size > limits.RECORD_BYTES_MAX - _REST_BYTES:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(item)
        size += item_size
    if portion:
        yield tuple(portion)
