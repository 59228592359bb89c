"""Where the status of a Job tells that it is over; members report it, views read it."""

from typing import Final

COMPLETE: Final = '.conditions[?(@.type=="Complete")].status'
FAILED: Final = '.conditions[?(@.type=="Failed")].status'
STARTED: Final = ".startTime"
COMPLETED: Final = ".completionTime"
IS_SO: Final = "True"
"""The text of a condition that holds."""
