"""Requests to the APIs of real members, through the connections that their agents hold open.

The agent of a cluster reads requests from a feed, sends each to its member's API, and uploads the response, whose
body may be endless (a watch, a log that is followed). Connections belong to one server: with several replicas,
a request must reach the server to which the agent is connected.
"""

import contextlib
import math
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Final, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.requests import ClientDisconnect

_WAITING_MAX: Final = 64
"""Maximum number of requests that wait for one agent."""

_OPEN_MAX: Final = 1_024
"""Maximum number of requests through all agents."""

_CHUNKS: Final = 8
_ANSWER_S: Final = 30.0
QUIET_S: Final = 15.0


class NotReachableError(Exception):
    """The agent does not respond; the message contains the reason."""


class UnansweredError(NotReachableError):
    """The agent has got the request but did not respond: the member may have carried it out."""


class IncompleteError(Exception):
    """The agent's upload of a response ended before the response was complete."""


class Call(NamedTuple):
    """A request to a member's API; ``target`` is its path with the query."""

    method: str
    target: str
    accept: str
    content_type: str
    body: bytes


Queued = tuple[str, Call | None]
"""The id of a request, and the request; None instead of the request if its client left after the agent had read it."""


class Reply(NamedTuple):
    """The member's response. The receiver closes ``chunks``; iteration raises IncompleteError if the upload fails."""

    status: int
    content_type: str
    chunks: AsyncGenerator[bytes]


class _OpenRequest:
    """A request whose response is not complete yet."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.left = anyio.Event()
        """Set once the client or the agent has left."""
        self.is_complete = False
        self.is_lost = False
        """Whether the agent disconnected, or may not read the request."""
        self.read_from: _Connection | None = None
        """The connection from which the agent has read the request; None before it is read."""
        self.status = 0
        self.content_type = ""
        self.send: MemoryObjectSendStream[bytes]
        self.receive: MemoryObjectReceiveStream[bytes]
        self.send, self.receive = anyio.create_memory_object_stream[bytes](_CHUNKS)


class _Connection:
    """A connection of an agent, with a queue of new requests and ends of earlier requests that it has not read yet."""

    def __init__(self) -> None:
        self.send: MemoryObjectSendStream[Queued]
        self.receive: MemoryObjectReceiveStream[Queued]
        # The queue has no limit, because the end of a request must not be lost. ``call`` limits the number of requests.
        self.send, self.receive = anyio.create_memory_object_stream[Queued](math.inf)

    @property
    def is_full(self) -> bool:
        return self.receive.statistics().current_buffer_used >= _WAITING_MAX

    def unread(self) -> list[Queued]:
        """Remove and return all entries of the queue."""
        return [self.receive.receive_nowait() for _ in range(self.receive.statistics().current_buffer_used)]


class Tunnels:
    """The open connections of agents, and the requests that pass through them."""

    def __init__(self) -> None:
        self._agents: dict[str, _Connection] = {}
        self._open: dict[tuple[str, str], _OpenRequest] = {}

    async def calls(
        self, cluster: str, may_read: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[Queued | None]:
        """Yield new requests to a cluster's agent, and the ends of requests that this agent has read.

        Yield None after each ``QUIET_S`` seconds without a request. ``may_read`` is called before each request; the
        connection ends if it returns False.
        """
        connection = _Connection()
        # If the agent reconnects, the new connection replaces the former one, which may be broken. Requests that the
        # agent has not read from the former connection are moved to the new one.
        if former := self._agents.get(cluster):
            for waiting in former.unread():
                connection.send.send_nowait(waiting)
        self._agents[cluster] = connection
        try:
            while True:
                result: Queued | None = None
                with anyio.move_on_after(QUIET_S):
                    result = await connection.receive.receive()
                if result is not None and result[1] is not None:
                    if not await self._may_read(cluster, result[0], may_read):
                        return
                    # Skip a request whose client got an error or left: the client may have repeated it elsewhere.
                    if (opened := self._open.get((cluster, result[0]))) is None:
                        continue
                    opened.read_from = connection
                yield result
        finally:
            if self._agents.get(cluster) is connection:
                del self._agents[cluster]
            self._end(cluster, connection)
            connection.send.close()
            connection.receive.close()

    async def call(self, cluster: str, call: Call) -> Reply:
        """Send a request through an agent. Raises UnansweredError if the agent has read it, else NotReachableError."""
        agent = self._agents.get(cluster)
        if agent is None:
            raise NotReachableError(f"the agent of cluster {cluster} is not connected to this server")
        if len(self._open) >= _OPEN_MAX:
            raise NotReachableError("too many requests through agents are open")
        if agent.is_full:
            raise NotReachableError(f"the agent of cluster {cluster} does not respond")
        key, opened = (cluster, secrets.token_hex(16)), _OpenRequest()
        self._open[key] = opened
        try:
            agent.send.send_nowait((key[1], call))
            with anyio.move_on_after(_ANSWER_S):
                await opened.answered.wait()
        except anyio.BrokenResourceError:
            opened.is_lost = True
        except BaseException:
            self._close(key, opened)
            raise
        if opened.is_lost or not opened.answered.is_set():
            self._close(key, opened)
            if opened.read_from is not None:
                raise UnansweredError(
                    f"the agent of cluster {cluster} did not respond; the cluster may have carried out the request"
                )
            raise NotReachableError(f"the agent of cluster {cluster} does not respond")
        return Reply(opened.status, opened.content_type, self._chunks(key, opened))

    async def reply(
        self, cluster: str, number: str, status: int, content_type: str, chunks: AsyncIterable[bytes]
    ) -> bool:
        """Forward a response to the waiting client, until the response ends or the client disconnects.

        Return False if no client waits for the response.
        """
        opened = self._open.get((cluster, number))
        if opened is None or opened.answered.is_set():
            return False
        opened.status, opened.content_type = status, content_type
        opened.answered.set()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, opened.left, tasks.cancel_scope)
                async for chunk in chunks:
                    await opened.send.send(chunk)
                opened.is_complete = True
                tasks.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, ClientDisconnect):
            pass  # the client, or the agent, has left
        finally:
            opened.send.close()
            self._open.pop((cluster, number), None)
        return True

    async def _chunks(self, key: tuple[str, str], opened: _OpenRequest) -> AsyncGenerator[bytes]:
        try:
            async for chunk in opened.receive:
                yield chunk
            if not opened.is_complete:
                raise IncompleteError(f"the agent of cluster {key[0]} did not complete its response")
        finally:
            self._close(key, opened)

    async def _may_read(self, cluster: str, number: str, may_read: Callable[[], Awaitable[bool]]) -> bool:
        """Return whether the agent may read a request; fail the request if it may not, or if the check raises."""
        is_permitted = False
        try:
            is_permitted = await may_read()
        finally:
            if not is_permitted:
                self._fail(cluster, number)
        return is_permitted

    def _end(self, cluster: str, connection: _Connection) -> None:
        """End the requests of a connection that has ended."""
        # The agent will never read these requests: fail them now instead of at their time limit.
        for number, _call in connection.unread():
            self._fail(cluster, number)
        # The agent ends all requests that it read from this connection when the connection ends. If the agent is no
        # longer reachable, the end of its upload never arrives, so end the responses here.
        for (name, number), opened in list(self._open.items()):
            if name != cluster or opened.read_from is not connection:
                continue
            if opened.answered.is_set():
                opened.left.set()
            else:
                self._fail(cluster, number)

    def _fail(self, cluster: str, number: str) -> None:
        """Fail a request to which the agent will not respond."""
        if opened := self._open.get((cluster, number)):
            opened.is_lost = True
            opened.answered.set()

    def _close(self, key: tuple[str, str], opened: _OpenRequest) -> None:
        opened.left.set()
        opened.receive.close()
        if opened.is_lost or not opened.answered.is_set():
            opened.send.close()  # otherwise ``reply`` is sending, and closes the stream itself
        self._open.pop(key, None)
        if opened.read_from is not None and not opened.is_complete:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                opened.read_from.send.send_nowait((key[1], None))


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
