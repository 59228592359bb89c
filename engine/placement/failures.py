"""Errors of an attempt at an affinity group.

Their effects differ: if no cluster fits, the binding loses all clusters; if capacity is insufficient, it keeps them and
waits for capacity; after any other error it keeps them and is tried again.
"""

from typing import Final

NO_CLUSTER_FIT: Final = "NoClusterFit"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


class PlacementError(Exception):
    """An attempt failed; ``reason`` and the error's text become reason and message of the Scheduled condition."""

    reason = SCHEDULER_ERROR


class NoClusterFitError(PlacementError):
    """No cluster passes the filters."""

    reason = NO_CLUSTER_FIT


class UnschedulableError(PlacementError):
    """The clusters' capacity is insufficient."""

    reason = UNSCHEDULABLE


class SpreadError(PlacementError):
    """The spread constraints cannot be satisfied."""

    def __init__(self, text: str, reason: str = SCHEDULER_ERROR) -> None:
        """Add the prefix of Karmada's message."""
        super().__init__(f"failed to select clusters: {text}")
        self.reason = reason
