"""The lines of a stream that arrives in chunks."""


class Lines:
    """Splits chunks into lines at line feeds; an incomplete last line is left out."""

    def __init__(self) -> None:
        # The parts of an incomplete line; joined only once, since the answer to a plan is one line of many megabytes.
        self._parts: list[bytes] = []

    def take(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the lines that it completes."""
        self._parts.append(chunk)
        if b"\n" not in chunk:
            return []
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts = [rest]
        return lines

    def take_text(self, chunk: bytes) -> list[str]:
        """Add a chunk; return the lines that it completes as text, without carriage returns at their ends.

        JSON may contain other separators at which ``str.splitlines``, and so httpx, splits: U+0085, U+2028 and U+2029.
        """
        return [line.removesuffix(b"\r").decode(errors="replace") for line in self.take(chunk)]
