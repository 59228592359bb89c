"""Keep decisions within the size of a record: readers refuse a larger one, and Kafka does not store it."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from events import limits

_ItemT = TypeVar("_ItemT")

_REST_BYTES: Final = 64 * 1024
"""Bytes of a record that are reserved for the fields of a decision other than its list."""


def fits(items: object) -> bool:
    """Return whether a list fits into one record with the other fields of its decision."""
    return len(msgspec.json.encode(items)) <= limits.RECORD_BYTES_MAX - _REST_BYTES


def portions(items: tuple[_ItemT, ...]) -> Iterator[tuple[_ItemT, ...]]:
    """Split a list into portions that fit into one record each; a list that fits stays whole."""
    if fits(items):
        yield items
        return
    sizes = (len(msgspec.json.encode(item)) + 1 for item in items)
    yield from split(items, sizes, limits.RECORD_BYTES_MAX - _REST_BYTES)


def split(items: Iterable[_ItemT], sizes: Iterable[int], size_max: int) -> Iterator[tuple[_ItemT, ...]]:
    """Split a list into portions whose ``sizes`` add up to at most ``size_max``; a larger item stays alone."""
    portion: list[_ItemT] = []
    size = 0
    for item, item_size in zip(items, sizes, strict=True):
        if portion and size + item_size > size_max:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(item)
        size += item_size
    if portion:
        yield tuple(portion)
