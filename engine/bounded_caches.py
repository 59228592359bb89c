"""Caches that are bounded by the number and the size of their values."""

import sys
from collections.abc import Callable
from typing import Generic, TypeVar

_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")


class BoundedCache(Generic[_KeyT, _ValueT]):
    """Least recently used cache: drops the oldest values while their number or their total size exceeds a limit.

    The newest value is kept whatever its size. ``size_of`` returns the bytes of a value, which must not change.
    """

    def __init__(
        self, bytes_max: int, size_of: Callable[[_ValueT], int], count_max: int = sys.maxsize
    ) -> None:
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._count_max = count_max
        self._values: dict[_KeyT, _ValueT] = {}
        self._bytes = 0

    def get(self, key: _KeyT) -> _ValueT | None:
        """Return a value; None if it is not cached."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: _KeyT, value: _ValueT) -> None:
        """Cache a value; it replaces the previous value of the key."""
        self._drop(key)
        self._values[key] = value
        self._bytes += self._size_of(value)
        while len(self._values) > 1 and (
            len(self._values) > self._count_max or self._bytes > self._bytes_max
        ):
            self._drop(next(iter(self._values)))

    def _drop(self, key: _KeyT) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._bytes -= self._size_of(value)
