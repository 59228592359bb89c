"""How much of hostile content is read, and the one error that all readers raise."""

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """What is read at most: bytes of a file, documents in it, levels of nesting.

    ``repeated_bytes_max`` is how much aliases may add to what is written out, over the whole file.
    """

    content_bytes_max: int
    documents_max: int
    depth_max: int
    repeated_bytes_max: int


class Unreadable(Exception):  # noqa: N818  # a verdict on content that unwinds a reader, not a fault of the program
    """What can't be read.

    ``line`` counts from 1, 0 where it is unknown; ``syntax`` says that it isn't JSON, or YAML, at all.
    """

    def __init__(
        self, field: str, reason: str, remedy: str = "", *, line: int = 0, syntax: bool = False
    ) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.remedy = remedy
        self.line = line
        self.syntax = syntax


class Budget:
    """What is left of the limits while one file is read.

    ``repeated`` takes the paths of fields that stand twice, of which the last counts; without it they are refused.
    """

    def __init__(self, limits: Limits, repeated: list[str] | None = None) -> None:
        self.limits = limits
        self.repeated = repeated
        self._documents = 0
        self._repeated = 0

    def document(self) -> None:
        """One more document; raises Unreadable when there are too many."""
        self._documents += 1
        if self._documents > self.limits.documents_max:
            raise Unreadable("", f"more than {self.limits.documents_max} documents", "split the file")

    def repeat(self, size: int, name: str) -> None:
        """An alias adds so many bytes; raises Unreadable when aliases add too much."""
        self._repeated += size
        if self._repeated > self.limits.repeated_bytes_max:
            reason = (
                f"aliases (here *{name}) blow the content up by over {self.limits.repeated_bytes_max} bytes"
            )
            raise Unreadable("", reason, "write the values out")

    def deepen(self, depth: int) -> None:
        """A value stands this deep; raises Unreadable when that is too deep."""
        if depth > self.limits.depth_max:
            raise Unreadable("", f"nested deeper than {self.limits.depth_max} levels", "flatten it")
