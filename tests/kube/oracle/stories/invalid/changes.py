"""Changes that make an object invalid, and the story that tries them."""

import copy
from typing import Final, cast

from tests.kube.oracle import objects
from tests.kube.oracle.objects import Json
from tests.kube.oracle.playing import MERGE, Ask, Story

ABSENT: Final = object()
Change = tuple[str, object]


def changed(value: Json, *changes: Change) -> Json:
    """Return the object with other values at paths; ``ABSENT`` removes one."""
    copied = copy.deepcopy(value)
    for path, item in changes:
        *above, last = path.split(".")
        at = copied
        for step in above:
            below = cast("list[Json]", at)[int(step)] if step.isdecimal() else at.setdefault(step, {})
            at = cast("Json", below)
        if item is ABSENT:
            at.pop(last)
        else:
            at[last] = item
    return copied


def story(path: str, wrong: list[tuple[Change, ...]], updates: list[Json]) -> Story:
    """Try each invalid object; then create a valid one, and try each update."""
    good = objects.KINDS[path]

    async def send_updates(ask: Ask, ns: str) -> None:
        at = path.format(ns=ns)
        for changes in wrong:
            await ask("POST", f"{at}?dryRun=All", changed(good, *changes))
        await ask("POST", at, good)
        name = cast("Json", good["metadata"])["name"]
        for patch in updates:
            await ask("PATCH", f"{at}/{name}", patch, MERGE)

    return send_updates
