"""Client of one member's Kubernetes API: discovery, objects, server-side apply, lists and watches.

It maps failures to ``api_errors`` but neither waits nor retries; ``call_limits`` does that.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, NamedTuple, NoReturn
from urllib.parse import urlencode

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from yarl import URL

from engine.agent import api_errors, discovery, messages
from engine.agent.api_errors import ExpiredError, RefusedError, ThrottledError, UnreachableError
from engine.agent.credentials import Credentials
from engine.agent.discovery import Resource
from engine.agent.kubeconfigs import Access, KubeconfigError, tls
from engine.text_lines import Lines
from events import records
from events.json_values import Json, as_text, at, decoded, list_at, object_at, objects_at
from events.kube_objects import KubeObject
from events.validation.known_kinds import Kind

MANAGER: Final = "reballast"
"""Field manager of agents for server-side apply."""

LIST_OBJECTS: Final = 500
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_CONNECT_SECONDS: Final = 10.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=30.0)
_WATCH_SECONDS: Final = 290
_WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(
    total=None, sock_connect=_CONNECT_SECONDS, sock_read=_WATCH_SECONDS + 30.0
)
_FORWARD_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
"""Without a read timeout: watches and followed logs may send nothing for long."""

_MESSAGE_CHARS: Final = 500
_RETRY_AFTER_MAX_S: Final = 60.0
"""Longest wait in seconds that a server may demand: nothing else is sent to it meanwhile."""


class Listed(NamedTuple):
    """A complete list, and the resourceVersion to watch from."""

    items: list[KubeObject]
    version: str


class Change(NamedTuple):
    """An event of a watch: its type (ADDED, MODIFIED, DELETED, BOOKMARK) and the object."""

    type: str
    object: KubeObject


class Forwarded(NamedTuple):
    """The response to a user's request; its body is not read yet."""

    status: int
    content_type: str
    body: AsyncIterator[bytes]


class MemberApi:
    """Call one API server. Methods raise the errors of ``api_errors``, and KubeconfigError."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._credentials = Credentials(access)
        self._session: aiohttp.ClientSession | None = None
        self._certificates = "", ""
        self._opening = anyio.Lock()

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def version(self) -> str:
        """The server's Kubernetes version."""
        return str((await self._json("GET", "/version")).get("gitVersion", ""))

    async def probe(self, seconds: float) -> None:
        """Check that the server responds: ``/readyz``, or ``/version`` if it has no such path.

        Raises an error after ``seconds``.
        """
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            await self._send("GET", "/readyz", limit=limit)
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            await self._send("GET", "/version", limit=limit)

    async def discover(self) -> list[Resource]:
        """All served kinds; API groups that fail are left out.

        Takes two requests if the server has aggregated discovery (Kubernetes 1.30), else one for each group
        version.
        """
        core, others = [
            await self._json("GET", path, accept=discovery.ACCEPTED) for path in ("/api", "/apis")
        ]
        if core.get("kind") == others.get("kind") == discovery.AGGREGATED_KIND:
            return [resource for document in (core, others) for resource in discovery.of_aggregated(document)]
        versions = [str(version) for version in list_at(core, "versions")]
        for group in objects_at(others, "groups"):
            versions += [str(entry.get("groupVersion", "")) for entry in objects_at(group, "versions")]
        resources: list[Resource] = []
        for version in versions:
            try:
                resources += await self.of_version(version)
            except (RefusedError, UnreachableError):
                continue  # one failing aggregated API must not hide the other groups
        return resources

    async def of_version(self, version: str) -> list[Resource]:
        """The kinds of one group version."""
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return discovery.of_version(version, await self._json("GET", path))

    async def get(self, resource: Kind, namespace: str, name: str) -> KubeObject | None:
        """The object; None if it does not exist."""
        try:
            return KubeObject(await self._json("GET", resource.path(namespace, name)))
        except RefusedError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def apply(self, resource: Kind, manifest: KubeObject, *, force: bool) -> KubeObject:
        """Apply an object server-side; return the result."""
        path = resource.path(*manifest.key)
        query = {"fieldManager": MANAGER, "force": "true" if force else "false"}
        return KubeObject(await self._json("PATCH", path, query=query, body=manifest.document, form=_APPLY))

    async def create(self, resource: Kind, manifest: KubeObject) -> None:
        """Create an object."""
        path = resource.path(manifest.namespace)
        await self._json("POST", path, query={"fieldManager": MANAGER}, body=manifest.document)

    async def patch(
        self, resource: Kind, namespace: str, name: str, change: Json, subresource: str = ""
    ) -> bytes:
        """Change an object, or its subresource, by a merge patch; return the object as JSON."""
        path = resource.path(namespace, name) + (f"/{subresource}" if subresource else "")
        return await self._send("PATCH", path, query={"fieldManager": MANAGER}, body=change, form=_MERGE)

    async def delete(self, resource: Kind, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid; dependents are deleted in the background. No error if it does not exist."""
        body: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        try:
            await self._send("DELETE", resource.path(namespace, name), body=body)
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    async def list(self, resource: Kind, labels: str = "") -> Listed:
        """List all objects of a kind with these labels in pages; if the pages expire, list again in one request."""
        selected = {"labelSelector": labels} if labels else {}
        try:
            return await self._list(resource, {"limit": str(LIST_OBJECTS), **selected})
        except ExpiredError:
            return await self._list(resource, selected)

    async def newest_version(self, resource: Kind) -> str:
        """The newest resourceVersion of the server; any ``resource`` that may be listed will do."""
        page = await self._json("GET", resource.path(), query={"limit": "1"})
        return as_text(at(page, "metadata", "resourceVersion"))

    async def _list(self, resource: Kind, query: dict[str, str]) -> Listed:
        items: list[KubeObject] = []
        while True:
            page = await self._json("GET", resource.path(), query=query)
            # Items of typed lists have no apiVersion and kind.
            head: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
            items += [KubeObject({**head, **item}) for item in objects_at(page, "items")]
            metadata = object_at(page, "metadata")
            if not metadata.get("continue"):
                return Listed(items, str(metadata.get("resourceVersion", "")))
            query = {**query, "continue": str(metadata["continue"])}

    async def watch(self, resource: Kind, version: str, labels: str = "") -> AsyncGenerator[Change]:
        """Yield changes after a version until the server ends the watch; raises ExpiredError for too old versions."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        } | ({"labelSelector": labels} if labels else {})
        try:
            async with self._request("GET", resource.path(), query=query, limit=_WATCH_TIMEOUT) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    self._raise(response, await response.read())
                lines = Lines()
                async for chunk in response.content.iter_any():
                    for line in filter(None, lines.take(chunk)):
                        yield _change(line)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UnreachableError(f"watch of {resource.plural}: {_error_text(error)}") from None

    @asynccontextmanager
    async def forwarded(self, call: messages.Call) -> AsyncGenerator[Forwarded]:
        """Send a user's request and return the response, whatever its status."""
        try:
            async with self._request(
                call.method,
                call.target,
                content=call.body or None,
                form=call.content_type,
                accept=call.accept or records.JSON,
                limit=_FORWARD_TIMEOUT,
            ) as response:
                content_type = response.headers.get("content-type", "")
                yield Forwarded(response.status, content_type, response.content.iter_any())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UnreachableError(f"{call.method} {call.target}: {_error_text(error)}") from None

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        form: str = records.JSON,
        accept: str = records.JSON,
    ) -> Json:
        content = await self._send(method, path, query=query, body=body, form=form, accept=accept)
        try:
            return msgspec.json.decode(content, type=dict[str, object])
        except (msgspec.MsgspecError, RecursionError):
            raise UnreachableError(f"{method} {path}: the response is not a JSON object") from None

    async def _send(  # one parameter per part of a request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        form: str = records.JSON,
        accept: str = records.JSON,
        limit: aiohttp.ClientTimeout = _TIMEOUT,
    ) -> bytes:
        """Send a request; return the body of a response that is not an error."""
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with self._request(
                method, path, query=query, content=content, form=form, accept=accept, limit=limit
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UnreachableError(f"{method} {path}: {_error_text(error)}") from None
        if response.status >= HTTPStatus.BAD_REQUEST:
            self._raise(response, answer)
        return answer

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | None = None,
        form: str = "",
        accept: str = records.JSON,
        limit: aiohttp.ClientTimeout,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Send a request without mapping errors; raises the errors of aiohttp, and KubeconfigError."""
        authorization = await self._credentials.header()
        session = await self._opened()
        headers = {"accept": accept}
        if authorization:
            headers["authorization"] = authorization
        if form:
            headers["content-type"] = form
        text = f"{self._access.server.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with session.request(
                method,
                URL(text, encoded=True),
                data=content,
                headers=headers,
                timeout=limit,
                allow_redirects=False,
                proxy=self._access.proxy or None,
                server_hostname=self._access.server_name or None,
            ) as response:
                yield response
        except aiohttp.ClientConnectionError:
            # Reasons can be a new certificate of the server, or a new CA for the client certificates that it accepts.
            self._credentials.forget_files()
            raise

    async def _opened(self) -> aiohttp.ClientSession:
        """The HTTP client for the present credentials, created at the first call; certificates are read in a thread."""
        credentials = self._credentials
        # Tasks that begin together load the certificates once: those of the system take 30 ms of processor time.
        async with self._opening:
            certificates = credentials.certificate, credentials.authority
            if self._session is not None and self._certificates != certificates:
                # A certificate was renewed. Watches on the old session end and are resumed on the new one.
                former, self._session = self._session, None
                await former.close()
            if self._session is None:
                certificate, authority = certificates
                try:
                    context = await anyio.to_thread.run_sync(
                        tls, self._access, certificate, credentials.key, authority
                    )
                except KubeconfigError:
                    # The files may be in the middle of a replacement: the next request reads them again.
                    credentials.forget()
                    credentials.forget_files()
                    raise
                self._session, self._certificates = _session(context), certificates
            return self._session

    def _raise(self, response: aiohttp.ClientResponse, content: bytes) -> NoReturn:
        """Raise the error that matches a failure response; after a 401, credentials are read again."""
        code = response.status
        status = decoded(content)
        message = str(status.get("message") or response.reason)[:_MESSAGE_CHARS]
        text = f"{response.method} {response.url.path}: {code} {message}"
        if code == HTTPStatus.UNAUTHORIZED:
            self._credentials.forget()
        if code == HTTPStatus.TOO_MANY_REQUESTS:
            raise ThrottledError(text, _seconds(response.headers.get("retry-after", "")))
        raise api_errors.of_response(code, str(status.get("reason", "")), message, text)


def _session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    # ``limit=0`` (none): each watch occupies a connection for long, and ``call_limits`` bounds the other requests.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": "reballast-agent"},
        skip_auto_headers=("content-type",),
    )


def _change(line: bytes) -> Change:
    try:
        event = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError):
        raise UnreachableError("watch: a line is not a JSON object") from None
    value = KubeObject(object_at(event, "object"))
    kind = str(event.get("type", ""))
    if kind == "ERROR":
        message = str(value.at("message") or "")[:_MESSAGE_CHARS]
        if value.at("code") == HTTPStatus.GONE:
            raise ExpiredError(message)
        raise UnreachableError(f"watch: {message}")
    return Change(kind, value)


def _seconds(text: str) -> float:
    """The seconds in ``Retry-After``, at most ``_RETRY_AFTER_MAX_S``; 0 for dates, which API servers don't send."""
    return min(float(text), _RETRY_AFTER_MAX_S) if text.isascii() and text.isdecimal() else 0.0


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
