"""Order of a list after a strategic merge patch: patched items in patch order, other items in live order."""

from collections.abc import Callable, Iterable


def ordered(
    merged: Iterable[object],
    wanted: Iterable[object],
    live: Iterable[object],
    identify: Callable[[object], bytes],
) -> list[object]:
    """Return ``merged`` with the items of ``wanted`` in its order and the others in the order of ``live``.

    An item that is not wanted precedes a wanted one if it precedes it in the live list. ``identify`` returns
    the key of an item.
    """
    wishes, places = _first_indexes(wanted, identify), _first_indexes(live, identify)
    items = [(identify(item), item) for item in merged]
    last = len(places)
    named = sorted((each for each in items if each[0] in wishes), key=lambda each: wishes[each[0]])
    others = sorted(
        (each for each in items if each[0] not in wishes), key=lambda each: places.get(each[0], last)
    )
    result: list[object] = []
    left = right = 0
    while left < len(others) and right < len(named):
        here, there = places.get(others[left][0]), places.get(named[right][0])
        if here is not None and there is not None and here < there:
            result.append(others[left][1])
            left += 1
        else:
            result.append(named[right][1])
            right += 1
    return result + [item for _identity, item in (*named[right:], *others[left:])]


def _first_indexes(items: Iterable[object], identify: Callable[[object], bytes]) -> dict[bytes, int]:
    """Return the first index of each item."""
    result: dict[bytes, int] = {}
    for index, item in enumerate(items):
        result.setdefault(identify(item), index)
    return result
