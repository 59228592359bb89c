"""How a workload replaces its pods when their template changes."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.works import budgets
from events import limits

ORDERED: Final = ("StatefulSet", "DaemonSet")
"""Kinds whose pods are replaced one after another in their slots (ordinals or nodes).

Deployments create the new pods first.
"""

_KINDS: Final = ("Deployment", *ORDERED)
_QUARTER: Final = "25%"
_RECREATE: Final = "Recreate"
_STATEFUL: Final = "StatefulSet"
_DEADLINE_S: Final = 600

Limit = int | str


class Strategy(Struct, frozen=True, gc=False):
    """Limits of a rolling update: numbers of pods, or percentages such as ``25%``; unused if ``is_recreating``.

    ``partition``: pods with a lower ordinal are not replaced. ``deadline_s``: seconds without progress after which a
    rollout has failed.
    """

    is_recreating: bool
    max_surge: Limit = 0
    max_unavailable: Limit = 1
    partition: int = 0
    is_paused: bool = False
    deadline_s: int = _DEADLINE_S

    def surge(self, replicas: int) -> int:
        """Return how many pods may exist beyond the replicas; percentages are rounded up, as in Kubernetes."""
        return budgets.count_of(self.max_surge, replicas)

    def unavailable(self, replicas: int) -> int:
        """Return how many of the replicas may be unavailable, at least 1 without surge; percentages round down."""
        limit = self.max_unavailable
        count = limit if isinstance(limit, int) else budgets.count_of(limit, replicas, is_least=True)
        return min(count, replicas) if count or self.surge(replicas) else 1


class _Rolling(Struct, frozen=True, rename="camel"):
    max_surge: Limit | None = None
    max_unavailable: Limit | None = None
    partition: int | None = None


class _Strategy(Struct, frozen=True, rename="camel"):
    type: str = ""
    rolling_update: _Rolling | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    paused: bool | None = None
    progress_deadline_seconds: int | None = None


class _Manifest(Struct, frozen=True):
    spec: _Spec = _Spec()


_MANIFEST: Final = msgspec.json.Decoder(_Manifest)


def read(kind: str, manifest: bytes | msgspec.Raw) -> Strategy | None:
    """Return the strategy of a workload; None for kinds that replace all pods at once, and if it can't be read."""
    if kind not in _KINDS:
        return None
    try:
        spec = _MANIFEST.decode(manifest).spec
    except (msgspec.MsgspecError, RecursionError):
        return None
    written = (spec.update_strategy if kind in ORDERED else spec.strategy) or _Strategy()
    rolling = written.rolling_update or _Rolling()
    deadline_s = spec.progress_deadline_seconds
    default_surge, default_unavailable = (0, 1) if kind in ORDERED else (_QUARTER, _QUARTER)
    return Strategy(
        is_recreating=written.type == _RECREATE,
        max_surge=default_surge if rolling.max_surge is None else rolling.max_surge,
        max_unavailable=default_unavailable if rolling.max_unavailable is None else rolling.max_unavailable,
        partition=rolling.partition or 0 if kind == _STATEFUL else 0,
        is_paused=spec.paused is True,
        # The number in a template may be anything, but a time must fit into a float.
        deadline_s=_DEADLINE_S if deadline_s is None else min(max(deadline_s, 0), limits.SECONDS_MAX),
    )
