"""What the write API answers: one result for each change."""

from msgspec import Struct

LATE = "late"
NOT_FOUND = "not found"
UNKNOWN = "unknown"


class Problem(Struct, frozen=True, kw_only=True):
    """Why a change was not made.

    ``verdict`` is *late* (another client wrote meanwhile), *not found*, or *unknown* (the log can't tell whether the
    write happened).
    """

    verdict: str
    reason: str


class Result(Struct, frozen=True, kw_only=True):
    """What became of one object.

    ``action`` is what was done in one word (created, configured, unchanged, deleted …), empty where there is a
    ``problem``. ``resource_version`` is the number of the write.
    """

    action: str = ""
    resource_version: int = 0
    problem: Problem | None = None
