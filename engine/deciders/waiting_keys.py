"""The keys of a shard that wait to be decided: queued by inputs and timers, ordered, and taken by steps."""

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from engine.deciders.state import REPORTED, Cause, ShardState, Waiting
from events import topics

_FOLD_ORDER: Final = {topic: rank for rank, topic in enumerate(topics.FACT_TOPICS)}
_REPORTED_SHARE: Final = 8
"""One of this many decided keys comes from the queue of member reports, however many other keys wait."""


def enqueue(shard: ShardState, key: str, flags: int, cause: Cause) -> None:
    """Queue a key to be decided; ``cause`` is the input or timer that requires this."""
    new = Waiting(flags, cause, cause.at_ms)
    previous = shard.touched.get(key)
    shard.touched[key] = _merged(previous, new) if previous else new


def enqueue_by_fact(shard: ShardState, key: str, flags: int, cause: Cause) -> None:
    """Queue a key to be decided because of a changed fact; the newest of several facts is the cause."""
    touched = shard.touched.get(key)
    enqueue(shard, key, flags, newest(touched.cause if touched else None, cause))


def newest(previous: Cause | None, cause: Cause) -> Cause:
    """Return the later of two causes, in the order in which inputs are folded.

    That order is: clusters, policies, the shard's own inputs; each by offset. The start of a term has no position as a
    cause; as ``previous`` it always counts as the earlier one.
    """
    if previous is None or not previous.position:
        return cause
    return previous if _fold_order(previous) > _fold_order(cause) else cause


def _fold_order(cause: Cause) -> tuple[int, int]:
    topic, _, offset = cause.position.split("/")
    return _FOLD_ORDER.get(topic, len(_FOLD_ORDER)), int(offset)


def end_intake(shard: ShardState, priority_of: Callable[[str], int] | None = None) -> None:
    """End a turn's intake: append the newly queued keys in key order, behind the keys left by earlier turns.

    With ``priority_of``, which returns the priority of a key, the queues are then sorted by priority, highest first;
    keys of equal priority keep that order.
    """
    touched = shard.touched
    if priority_of is not None:
        for key, waiting in touched.items():
            touched[key] = msgspec.structs.replace(waiting, priority=priority_of(key))
    # Sorted: facts touch sets of keys, whose order differs between processes, and a replay must take the same keys.
    for key in sorted(touched):
        new = touched[key]
        previous = shard.reported.pop(key, None)
        queue = shard.waiting if key in shard.waiting or new.flags & ~REPORTED else shard.reported
        previous = queue.get(key, previous)
        queue[key] = _merged(previous, new) if previous else new
    touched.clear()
    if priority_of is not None:
        _sort_by_priority(shard.waiting)
        _sort_by_priority(shard.reported)


def _sort_by_priority(queue: dict[str, Waiting]) -> None:
    """Sort a queue by priority, highest first; the sort is stable."""
    if all(earlier.priority >= later.priority for earlier, later in itertools.pairwise(queue.values())):
        return
    ordered = sorted(queue.items(), key=lambda item: -item[1].priority)
    queue.clear()
    queue.update(ordered)


def _merged(previous: Waiting, new: Waiting) -> Waiting:
    # The newest cause explains the decision. But members report all the time, so a report never replaces a cause of
    # another kind. The oldest time measures how long the key has waited.
    is_change = bool(new.flags & ~REPORTED) or not previous.flags & ~REPORTED
    since_ms = min(previous.since_ms, new.since_ms)
    return Waiting(
        new.flags | previous.flags, new.cause if is_change else previous.cause, since_ms, new.priority
    )


def pop(shard: ShardState, count: int) -> Iterator[tuple[str, Waiting]]:
    """Yield the next ``count`` keys and remove each from its queue as it is yielded.

    Every eighth key comes from the queue of member reports, so that other keys cannot delay them forever. The order
    does not depend on ``count``: a step that ends early and its replay take the same keys.
    """
    waiting, reported = shard.waiting, shard.reported
    # List the keys once: finding the first key of a dict again after each deletion walks over all deleted ones.
    first_waiting = iter(list(itertools.islice(waiting, count)))
    first_reported = iter(list(itertools.islice(reported, count)))
    for position in range(1, count + 1):
        is_reported = reported and (not waiting or position % _REPORTED_SHARE == 0)
        queue, first = (reported, first_reported) if is_reported else (waiting, first_waiting)
        if not queue:
            return
        key = next(first)
        yield key, queue.pop(key)
