"""Structure of an explanation: the groups that were tried, their divisions, and each cluster in them."""

from typing import Final

import msgspec

KEPT: Final = "kept"
SCALE_UP: Final = "scale up"
SCALE_DOWN: Final = "scale down"
FRESH: Final = "do fresh scale"
DUPLICATED: Final = "duplicated"
BY_WEIGHT: Final = "static weight"
"""Kinds of a division. Those that can fail have Karmada's names, since its error messages contain them."""


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One division: its kind, the number of replicas divided, and the overflow tier."""

    kind: str
    seats: int
    tier: int | None = None


class ClusterExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One cluster in one affinity group.

    ``failed`` has the messages of all filters that exclude the cluster; the numbers are set only if ``failed`` is
    empty. ``allocatable`` is the number of free replicas, ``available`` that of free and running ones. ``weight`` is
    its weight in the division, ``kept`` the number of running replicas that it keeps in addition to those from the
    division.
    """

    name: str
    terminating: bool = False
    failed: tuple[str, ...] = ()
    score: int | None = None
    allocatable: int | None = None
    available: int | None = None
    tier: int | None = None
    selected: bool = False
    weight: int | None = None
    kept: int | None = None
    replicas: int | None = None


class GroupExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One group that was tried: its divisions or its error, and all clusters in name order."""

    affinity_name: str
    error: str = ""
    steps: tuple[Step, ...] = ()
    clusters: tuple[ClusterExplanation, ...] = ()


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The groups that were tried, in order; the last one succeeded, or all failed."""

    mode: str
    groups: tuple[GroupExplanation, ...]
