"""Errors of an agent's API calls, one class for each way to handle them."""

from http import HTTPStatus
from typing import Final

_INTERNAL_ERROR: Final = "InternalError"


class ApiError(Exception):
    """A failed call; the message names the request and the response."""


class UnreachableError(ApiError):
    """No response, or a server error: try again later."""


class FailedError(UnreachableError):
    """The server failed on this request only (500 InternalError), for example because a webhook does not respond."""


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


def of_response(code: int, reason: str, message: str, text: str) -> ApiError:
    """The error for a failure response of a Kubernetes API; ``text`` is ``message`` after the request and the code."""
    if code == HTTPStatus.GONE:
        return ExpiredError(text)
    # If the server's storage fails, which affects all requests, the code is another one or the reason is missing.
    if code == HTTPStatus.INTERNAL_SERVER_ERROR and reason == _INTERNAL_ERROR:
        return FailedError(text)
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(text)
    return RefusedError(code, reason, message)
