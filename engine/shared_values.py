"""Deduplication in memory: equal values share one object, since values of many workloads take most of the memory.

Shards and simulated members in one process also share values with each other.
"""

from collections.abc import Hashable
from functools import lru_cache
from sys import intern
from typing import Final, TypeVar

from msgspec import structs

from events import shapes

_Value = TypeVar("_Value", bound=Hashable)

_KEPT_MAX: Final = 16_384
"""Maximum number of cached values. Equal values mostly follow soon after each other: those of one step, one binding."""

_LABELS_KEPT_MAX: Final = 2_048
_LABELS_MAX: Final = 16
"""Larger sets of labels are not shared: the cache would keep them in memory."""


def shared(value: _Value) -> _Value:
    """Return a cached object that equals the value; if there is none, cache and return the value itself."""
    return _shared(value)  # pyright: ignore[reportReturnType]  # the cache forgets the type


def shared_ref(ref: shapes.WorkloadRef) -> shapes.WorkloadRef:
    """Return a cached reference that equals this one; its kind and namespace are interned, its name is shared."""
    return shared(
        structs.replace(
            ref,
            api_version=intern(ref.api_version),
            kind=intern(ref.kind),
            name=shared(ref.name),
            namespace=intern(ref.namespace),
        )
    )


def shared_labels(labels: dict[str, str]) -> dict[str, str]:
    """Return a cached dictionary of equal labels, which must not be changed; the values are shared too."""
    if len(labels) > _LABELS_MAX:
        return labels
    return _shared_labels(tuple((intern(name), shared(value)) for name, value in labels.items()))


@lru_cache(_LABELS_KEPT_MAX)
def _shared_labels(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(labels)


@lru_cache(_KEPT_MAX)
def _shared(value: Hashable) -> Hashable:
    return value
