"""PodDisruptionBudgets: how many of the selected pods must be healthy."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values.selectors import LabelSelector

KIND: Final = ("policy/v1", "PodDisruptionBudget")
_PERCENT_MAX: Final = 100


class Budget(Struct, frozen=True, gc=False):
    """The selected pods, and one of the limits: a number of pods, or a percentage such as ``50%``."""

    selector: LabelSelector
    min_available: int | str | None = None
    max_unavailable: int | str | None = None

    def desired(self, expected: int) -> int:
        """Return how many of the expected pods must be healthy; percentages are rounded up, as in Kubernetes."""
        if self.max_unavailable is not None:
            return max(expected - count_of(self.max_unavailable, expected), 0)
        return count_of(0 if self.min_available is None else self.min_available, expected)


class _Spec(Struct, frozen=True, rename="camel"):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class _Manifest(Struct, frozen=True):
    spec: _Spec = _Spec()


_MANIFEST: Final = msgspec.json.Decoder(_Manifest)


def read(manifest: bytes | msgspec.Raw) -> Budget | None:
    """Return the budget in the manifest of a PodDisruptionBudget; None if it can't be read or selects nothing."""
    try:
        spec = _MANIFEST.decode(manifest).spec
    except (msgspec.MsgspecError, RecursionError):
        return None
    if spec.selector is None:
        return None
    return Budget(spec.selector, spec.min_available, spec.max_unavailable)


def count_of(limit: int | str, expected: int, *, is_least: bool = False) -> int:
    """Return a limit as a number of pods; percentages are rounded up (``is_least``: down), an invalid text gives 0."""
    if isinstance(limit, int):
        return limit
    digits = limit.removesuffix("%")
    is_part = (
        limit.endswith("%")
        and digits.isascii()
        and digits.isdecimal()
        and len(digits) <= len(str(_PERCENT_MAX))
    )
    part = expected * int(digits) if is_part else 0
    return part // _PERCENT_MAX if is_least else -(-part // _PERCENT_MAX)
