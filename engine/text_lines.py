"""The lines of a response that arrives in chunks."""


class TextLines:
    """Splits chunks into lines at line feeds only; an incomplete last line is left out.

    JSON may contain the other separators at which ``str.splitlines``, and so httpx, splits: U+0085, U+2028 and U+2029.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, chunk: bytes) -> list[str]:
        """Add a chunk; return the lines that it completes."""
        first, *others = chunk.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        complete = [b"".join(self._begun), *others[:-1]]
        self._begun = [others[-1]]
        return [line.removesuffix(b"\r").decode(errors="replace") for line in complete]
