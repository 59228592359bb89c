"""Errors between an agent and an API, by how they are handled."""


class ApiError(Exception):
    """A failed call; the message names the request and the response."""


class UnreachableError(ApiError):
    """No response, or a server error: try again later."""


class ThrottledError(ApiError):
    """Too many requests; ``after_s`` is the minimum wait, 0 if the server named none."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__(message)
        self.after_s = after_s


class RefusedError(ApiError):
    """The request was refused; ``code`` and ``reason`` are those of the response."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ExpiredError(ApiError):
    """The resourceVersion is too old: list again."""
