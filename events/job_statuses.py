"""JSON paths in the status of a Job that show its completion; members report them, projections read them."""

from typing import Final

COMPLETE: Final = '.conditions[?(@.type=="Complete")].status'
FAILED: Final = '.conditions[?(@.type=="Failed")].status'
ENDS: Final = {"Complete": COMPLETE, "Failed": FAILED}
"""The types of the conditions that end a Job, each with the path of its status."""

STARTED: Final = ".startTime"
COMPLETED: Final = ".completionTime"
TRUE: Final = "True"
"""Status text of a condition that is true."""
