"""Results of the write API: one for each change."""

from msgspec import Struct

LATE = "late"
NOT_FOUND = "not found"
UNKNOWN = "unknown"


class Problem(Struct, frozen=True, kw_only=True):
    """Why a change was not made.

    ``verdict`` is *late* (another client wrote in between), *not found*, or *unknown* (the append failed in a
    way that leaves open whether the record was stored).
    """

    verdict: str
    reason: str


class Result(Struct, frozen=True, kw_only=True):
    """Outcome of one change.

    ``action`` is one word (created, configured, unchanged, deleted …), empty if there is a ``problem``.
    ``resource_version`` is the sequence number of the write.
    """

    action: str = ""
    resource_version: int = 0
    problem: Problem | None = None
