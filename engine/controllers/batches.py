"""Actions on many objects, a limited number of them at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

_TOGETHER: Final = 256
_ItemT = TypeVar("_ItemT")
_ResultT = TypeVar("_ResultT")


async def gather(action: Callable[[_ItemT], Awaitable[_ResultT]], items: Sequence[_ItemT]) -> list[_ResultT]:
    """Carry out an action on each item, on several at a time; return the results in the order of the items."""
    results: list[_ResultT] = []
    for start in range(0, len(items), _TOGETHER):
        results += await asyncio.gather(*(action(item) for item in items[start : start + _TOGETHER]))
    return results
