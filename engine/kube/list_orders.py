"""The order of a merged list: that of a patch among the items that it names, the live one among the others."""

from collections.abc import Callable


def ordered(
    merged: list[object], wanted: list[object], live: list[object], identify: Callable[[object], object]
) -> list[object]:
    """The items of ``merged``, those of ``wanted`` in its order, the others in that of ``live``.

    An item that is not wanted goes before one that is where the live list had it so; ``identify`` gives what
    tells items apart.
    """
    wishes, places = [identify(item) for item in wanted], [identify(item) for item in live]
    named = [item for item in merged if identify(item) in wishes]
    named.sort(key=lambda item: wishes.index(identify(item)))
    others = [item for item in merged if identify(item) not in wishes]
    others.sort(key=lambda item: _place(places, identify(item)))
    found: list[object] = []
    while named and others:
        left, right = identify(others[0]), identify(named[0])
        before = left in places and right in places and places.index(left) < places.index(right)
        found.append(others.pop(0) if before else named.pop(0))
    return found + named + others


def _place(places: list[object], identity: object) -> int:
    return places.index(identity) if identity in places else len(places)
