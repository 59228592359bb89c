"""The question to the child, and its lines; see the package."""

from typing import Final

from msgspec import Struct

from engine.plans.planning import Question

FAILED: Final = b"failed "
MODULE: Final = "engine.process.plans"


class Ask(Struct, frozen=True, kw_only=True):
    """A question about the log in a directory, or at ``where`` on Kafka (the address may hold a password)."""

    directory: str
    question: Question
    where: str | None = None
