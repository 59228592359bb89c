"""What can go wrong between an agent and an API, by what follows from it."""


class ApiError(Exception):
    """An answer that is none; the message says what was asked and what came."""


class UnreachableError(ApiError):
    """Nobody answers, or the one who answers can't for now: try again later."""


class ThrottledError(ApiError):
    """Too much was asked; ``after_s`` is how long to wait at least, 0 where that was not said."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__(message)
        self.after_s = after_s


class RefusedError(ApiError):
    """The answer is no; ``code`` and ``reason`` say why, as the API words it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ExpiredError(ApiError):
    """The version from which was to be gone on is not kept any more: list again."""
