"""HTTP client of the server; error responses become Failure."""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from engine import optional_imports
from engine.cli import failures, next_commands, output, server_location
from engine.identity.endpoint import FILE, verification
from engine.text_lines import Lines
from events.json_values import DECODING_ERRORS, Json, decoded, object_at

# httpx's own command line would load click, rich and pygments: a third of a command's start-up time.
with optional_imports.without("httpx._main"):
    import httpx

_CONNECT_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 120.0
"""Time limit of a response: rebuilding views, as-of queries and thousands of objects take long."""
_PREFIX: Final = "/api/v1/"
_KUBERNETES: Final = "/kubernetes/"
"""Path of the Kubernetes API on the query server; all objects are written there."""
_NO_TLS: Final = "WRONG_VERSION_NUMBER"
_OTHER_SERVER: Final = "check that the address is that of a Reballast server of this release"
"""OpenSSL's reason if a server without TLS answers."""
_T = TypeVar("_T")
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


Parameter: TypeAlias = str | int | None
"""The value of a query parameter; a parameter with None or an empty text is not sent."""


class Reply(NamedTuple):
    """A response of the Kubernetes API: an object, or a Status for an error."""

    code: int
    body: Json
    warnings: list[str]

    @property
    def is_refusal(self) -> bool:
        """Whether the response has an error status (400 or more)."""
        return self.code >= HTTPStatus.BAD_REQUEST


class Client:
    """Client of the server with this data directory.

    Without a directory, it is a client of the server that the environment variables name, or else of the server
    with the default data directory.
    """

    def __init__(self, directory: Path | None, *, answer_seconds: float = _ANSWER_SECONDS) -> None:
        self._directory = directory or server_location.default_directory()
        self._is_named = directory is None and server_location.is_named()
        location = server_location.find(directory)
        self.observes = location.observes
        """The name of the control plane that the server observes; empty if it observes none."""
        self._http = httpx.Client(
            base_url=location.url,
            headers={"authorization": f"Bearer {location.token}"},
            timeout=httpx.Timeout(answer_seconds, connect=_CONNECT_SECONDS),
            trust_env=False,  # a local server needs no proxy
            verify=verification(location.url, location.authority),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def get(self, path: str, kind: type[_T], /, **query: Parameter) -> _T:
        """GET a query; raises Failure with the server's message if it is refused."""
        return _read(self._request("GET", _query_path(path), query), kind)

    def verify(self, kind: type[_T], *, views: bool = False) -> _T:
        """Verify the log (and the views), without a time limit, since a long log takes long. Raises Failure."""
        query = {"views": "true"} if views else {}
        timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
        return _read(self._request("GET", _query_path("verify"), query, timeout=timeout), kind)

    def find(self, path: str, kind: type[_T], /, **query: Parameter) -> _T | None:
        """GET an object; None if it does not exist. Raises Failure for other errors."""
        response = self._request("GET", _query_path(path), query)
        return None if response.status_code == HTTPStatus.NOT_FOUND else _read(response, kind)

    def kubernetes(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, Parameter] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request to the Kubernetes API; a refusal is returned like any other response.

        Raises Failure if the server is not reachable, is failing, or rejects the token.
        """
        content = None if body is None else msgspec.json.encode(body)
        sent = {"content-type": "application/json"} if body is not None else {}
        response = self._request(method, _KUBERNETES + path, query, content, {**sent, **(headers or {})})
        answer = decoded(response.content)
        if "kind" not in answer:
            raise _failure(response)
        if _is_unable(response.status_code):
            raise failures.Failure(
                f"the server is unavailable: {answer.get('message', '')}", "repeat it later"
            )
        warnings = [
            re.sub(r"\\(.)", r"\1", text)
            for header in response.headers.get_list("warning")
            for text in _WARNING.findall(header)
        ]
        return Reply(response.status_code, answer, warnings)

    def post(self, path: str, body: Struct | Json, kind: type[_T]) -> _T:
        """POST a command that writes no object; raises Failure with the server's message if it is refused."""
        return _read(self._request("POST", _query_path(path), content=msgspec.json.encode(body)), kind)

    def delete(self, path: str) -> None:
        """DELETE something other than an object, such as a plan; no error if it does not exist."""
        response = self._request("DELETE", _query_path(path))
        if response.status_code >= HTTPStatus.BAD_REQUEST and response.status_code != HTTPStatus.NOT_FOUND:
            raise _failure(response)

    @contextmanager
    def stream(self, path: str, **query: Parameter) -> Generator[Iterator[str]]:
        """Open a streaming response; yields its lines. Raises Failure."""
        timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
        try:
            with self._http.stream(
                "GET", _query_path(path), params=_params(query), timeout=timeout
            ) as response:
                self._check_token(response)
                if response.status_code >= HTTPStatus.BAD_REQUEST:
                    response.read()
                    raise _failure(response)
                lines = Lines()
                yield (line for chunk in response.iter_bytes() for line in lines.take_text(chunk))
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self._silent(error) from None

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Parameter] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: httpx.Timeout | None = None,
    ) -> httpx.Response:
        try:
            with output.waiting("waiting for the server"):
                response = self._http.request(
                    method,
                    path,
                    params=_params(query or {}),
                    content=content,
                    headers=headers,
                    timeout=timeout or self._http.timeout,
                )
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self._silent(error) from None
        self._check_token(response)
        return response

    def _check_token(self, response: httpx.Response) -> None:
        """Raise Failure if the server rejects the token."""
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            remedy = f"restart the server: {next_commands.up(self._directory)}"
            if self._is_named:
                remedy = f"set {server_location.TOKEN_VARIABLE} to the token in the server's {FILE}"
            raise failures.Failure(f"{self._name} rejects the token", remedy)

    @property
    def _name(self) -> str:
        return str(self._http.base_url) if self._is_named else f"the server of {self._directory}"

    def _silent(self, error: Exception) -> failures.Failure:
        reason = str(error)
        remedy = f"start it with: {next_commands.up(self._directory)}"
        if _NO_TLS in reason:
            reason = "it does not use TLS; write http:// instead of https://"
        if self._is_named:
            remedy = (
                f"correct or unset {server_location.SERVER_VARIABLE}; "
                f"{server_location.AUTHORITY_VARIABLE} names a file with the certificate of an https server"
            )
        return failures.Failure(
            f"{self._name} does not answer: {reason or type(error).__name__}", remedy, code=failures.NO_SERVER
        )


def _is_unable(code: int) -> bool:
    """Whether the server could not handle the request: 429, or a server error other than 504.

    After a 504 the write may have succeeded, so the caller must handle that response.
    """
    return code == HTTPStatus.TOO_MANY_REQUESTS or (
        code >= HTTPStatus.INTERNAL_SERVER_ERROR and code != HTTPStatus.GATEWAY_TIMEOUT
    )


def _params(query: Mapping[str, Parameter]) -> dict[str, str]:
    """Query parameters without empty ones; booleans in lower case."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value not in (None, "")
    }


def _query_path(path: str) -> str:
    """Return the path of a query from the part after ``_PREFIX``.

    Users may type any characters as a name, so they are encoded. ``%`` is kept, because some callers encode names.
    """
    return _PREFIX + quote(path, safe="/:%")


def _read(response: httpx.Response, kind: type[_T]) -> _T:
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise _failure(response)
    try:
        return msgspec.json.decode(response.content, type=kind)
    except DECODING_ERRORS as error:
        raise failures.Failure(f"unexpected response from the server: {error}", _OTHER_SERVER) from None


def _failure(response: httpx.Response) -> failures.Failure:
    error = object_at(decoded(response.content), "error")
    if not error:
        answered = f"the server answered {response.status_code} {response.reason_phrase}"
        return failures.Failure(answered, _OTHER_SERVER)
    field, reason = str(error.get("field", "")), str(error.get("reason", ""))
    is_busy = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    failure = failures.ServerBusy if is_busy else failures.Failure
    return failure(f"{field}: {reason}" if field else reason, str(error.get("remedy", "")))
