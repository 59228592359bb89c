"""What the door answers: one result for each object that was asked for."""

import msgspec
from msgspec import Struct

REFUSED = "refused"
LATE = "late"
NOT_FOUND = "not found"
UNKNOWN = "unknown"


class Problem(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why something was not done: where (file, document, line, field), what is wrong, and what to do.

    ``verdict`` is *refused* (what was sent is wrong), *late* (somebody else wrote meanwhile), *not found*, or
    *unknown* (the log can't tell whether the write happened).
    """

    verdict: str
    reason: str
    field: str = ""
    remedy: str = ""
    file: str = ""
    document: int = 0
    line: int = 0


class Result(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of one object.

    ``action`` is what was done in one word (created, configured, unchanged, deleted, tainted …), empty where
    there are ``problems``. ``resource`` is the kind as kubectl prints it; ``resource_version`` is the number of the
    write; ``object`` the object as it stands now.
    """

    action: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    resource_version: int = 0
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    object: msgspec.Raw | None = None
