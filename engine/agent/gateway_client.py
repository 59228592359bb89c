"""HTTP client of the gateway for one cluster's agent."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from engine import optional_imports
from engine.agent import messages
from engine.agent.api_errors import RefusedError, ThrottledError, UnreachableError
from engine.identity.endpoint import verification
from engine.text_lines import Lines

# httpx's own command line loads click, rich and pygments, which the agent does not use.
with optional_imports.without("httpx._main"):
    import httpx

_TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)
_QUIET_SECONDS: Final = 60.0
"""The feed sends a line at least every 15 s (``agents.work_feed``); a silence this long means a dead connection."""

_FOLLOW_TIMEOUT: Final = httpx.Timeout(10.0, read=_QUIET_SECONDS)
_REPLY_TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0, write=None)
_CALL: Final = msgspec.json.Decoder(messages.Call)
_LINE: Final = msgspec.json.Decoder(messages.Line)
_Answer = TypeVar("_Answer", bound=messages.Shape)


class GatewayClient:
    """Call the gateway; all methods raise the errors of ``api_errors``."""

    def __init__(self, server: str, token: str, cluster: str, authority: str = "") -> None:
        self._path = f"/api/v1/agents/{quote(cluster, safe='')}"
        self._http = httpx.AsyncClient(
            base_url=server,
            headers={"authorization": f"Bearer {token}", "user-agent": "reballast-agent"},
            timeout=_TIMEOUT,
            trust_env=False,
            verify=verification(server, authority),
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def cluster(self) -> messages.Cluster:
        """The cluster's membership and resource models."""
        return await self._request("GET", "", messages.Cluster)

    async def manifest(self, key: str, version: tuple[int, int]) -> messages.Manifest:
        """The manifest of a work; raises RefusedError with code 404 if the work is outdated."""
        query = {"key": key, "term": str(version[0]), "step": str(version[1])}
        return await self._request("GET", "/manifest", messages.Manifest, query=query)

    async def namespaces(self) -> messages.Namespaces:
        """The namespaces that are propagated to the cluster."""
        return await self._request("GET", "/namespaces", messages.Namespaces)

    async def newest_work(self, key: str) -> messages.Work:
        """The newest work of a binding; a removal with version (0, 0) if the control plane has no work of the binding.

        It may have none after its log was restored from a backup. A 404 raises RefusedError instead of returning a
        removal: a proxy may have sent it, and it must not cause the removal of an object.
        """
        return await self._request("GET", "/work", messages.Work, query={"key": key})

    async def report(self, batch_id: str, reports: Sequence[messages.Report]) -> messages.Cluster:
        """Send reports, and return the cluster's state; a repeated ``batch_id`` has no second effect."""
        body = msgspec.json.encode(messages.Reports(id=batch_id, reports=tuple(reports)))
        return await self._request("POST", "/reports", messages.Cluster, body=body)

    async def follow(self, after: int | None) -> AsyncGenerator[messages.Line]:
        """Yield the lines of the feed of works after a position (None: a full list first); ends with the connection."""
        async for line in self._lines("/works", _LINE, {} if after is None else {"after": str(after)}):
            yield line

    async def calls(self) -> AsyncGenerator[messages.Call]:
        """Yield the requests of users to the member's API; ends with the connection."""
        async for call in self._lines("/calls", _CALL, {}):
            if call.id:
                yield call

    async def reply(self, call_id: str, status: int, content_type: str, chunks: AsyncIterable[bytes]) -> None:
        """Upload the response to a user's request; ends early if the user has disconnected."""
        query = {"id": call_id, "status": str(status)}
        # A workload behind a proxied service may send any bytes; the client encodes text as ASCII only.
        headers = {b"content-type": content_type.encode("utf-8", "surrogateescape")}
        try:
            await self._http.post(
                f"{self._path}/replies", params=query, headers=headers, content=chunks, timeout=_REPLY_TIMEOUT
            )
        except httpx.HTTPError as error:
            raise UnreachableError(f"replies: {error or type(error).__name__}") from None

    async def _lines(
        self, path: str, decoder: msgspec.json.Decoder[_Answer], query: dict[str, str]
    ) -> AsyncGenerator[_Answer]:
        """Yield the decoded lines of a feed; ends with the connection."""
        try:
            async with self._http.stream(
                "GET", f"{self._path}{path}", params=query, timeout=_FOLLOW_TIMEOUT
            ) as response:
                if response.status_code >= HTTPStatus.BAD_REQUEST:
                    await response.aread()
                    _raise(response)
                lines = Lines()
                async for chunk in response.aiter_bytes():
                    for line in lines.take_text(chunk):
                        yield decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise UnreachableError(f"{path}: {error}") from None
        except httpx.HTTPError as error:
            raise UnreachableError(f"{path}: {error or type(error).__name__}") from None

    async def _request(
        self,
        method: str,
        path: str,
        shape: type[_Answer],
        *,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> _Answer:
        try:
            response = await self._http.request(method, self._path + path, params=query, content=body)
        except httpx.HTTPError as error:
            raise UnreachableError(f"{method} {path}: {error or type(error).__name__}") from None
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            _raise(response)
        try:
            return msgspec.json.decode(response.content, type=shape)
        except (msgspec.MsgspecError, RecursionError):
            raise UnreachableError(
                f"{method} {path}: unexpected response from the server (not Reballast JSON)"
            ) from None


def _raise(response: httpx.Response) -> None:
    """Raise the error that matches a failure response."""
    code = response.status_code
    message = f"{response.request.method} {response.request.url.path}: {code} {response.text[:500]}"
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        raise ThrottledError(message, 1.0)
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise UnreachableError(message)
    raise RefusedError(code, "", message)
