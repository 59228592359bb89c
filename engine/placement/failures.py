"""Why an attempt at a group of clusters fails.

Three kinds, because they have different effects: no cluster fits (the binding is emptied), too little room (it stays
and waits for room), anything else (it stays and is tried again).
"""

from typing import Final

NO_CLUSTER_FIT: Final = "NoClusterFit"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


class PlacementError(Exception):
    """An attempt failed; ``reason`` is the reason of the Scheduled condition, the text its message."""

    reason = SCHEDULER_ERROR


class NoClusterFitError(PlacementError):
    """No cluster passes the filters."""

    reason = NO_CLUSTER_FIT


class UnschedulableError(PlacementError):
    """The clusters have less room than is needed."""

    reason = UNSCHEDULABLE


class SpreadError(PlacementError):
    """The spread constraints cannot be met."""

    def __init__(self, text: str) -> None:
        """Prefix the text as the reference scheduler does."""
        super().__init__(f"failed to select clusters: {text}")
