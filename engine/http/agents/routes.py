"""The agents' API, under ``/api/v1/agents/NAME``: the works of one cluster, their manifests, and reports.

Without a position, the feed of works lists all works and then sends each change; with a position in the log it sends
only the changes after it. An agent sees nothing else of the log, and only manifests that its cluster must run now.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from engine import loop_share
from engine.agent import messages
from engine.domain import replica_fields
from engine.http import member_namespaces
from engine.http.agents import tokens, work_messages
from engine.http.agents.reports import Reporting
from engine.http.counted_responses import CountedStream
from engine.http.errors import RefusalError
from engine.http.member_namespaces import NamespaceChanges
from engine.http.query import parameters
from engine.http.query.api_routes import PREFIX, ApiRoute, feed_route, read_body, read_query
from engine.http.services import Services
from engine.http.tunnels import Tunnels
from engine.works import manifests
from engine.writing.read_side import ReadSide
from engine.writing.write_api import WriteApi
from events import keys, records, topics
from projections import agent_queries, clusters
from projections import query as queries
from projections.clusters import Cluster
from projections.steps import foreign_works

FOLLOWERS_MAX: Final = 4_096
_BATCH_RECORDS: Final = 512
_QUIET_SECONDS: Final = 15
"""Longest silence of the feed; after it a line with the position is sent, so that both ends notice a dead peer."""

NDJSON: Final = "application/x-ndjson"
_encode = msgspec.json.Encoder(order="deterministic").encode
_Answer = Callable[[Request, str, Cluster | None], Awaitable[Response]]


class FollowQuery(parameters.Query, frozen=True, kw_only=True):
    """The offset to continue from, as a previous feed reported it; without one, the feed begins with a list."""

    after: parameters.Number | None = None


class ManifestQuery(parameters.Query, frozen=True, kw_only=True):
    """Binding key and version (term, step) of the work whose manifest is requested."""

    key: messages.Key
    term: parameters.Number
    step: parameters.Number


class WorkQuery(parameters.Query, frozen=True, kw_only=True):
    """Binding key of the work."""

    key: messages.Key


class ReplyQuery(parameters.Query, frozen=True, kw_only=True):
    """Id of the request that the agent answers, and HTTP status of the member's response."""

    id: str
    status: parameters.Number


_route = partial(ApiRoute, refusals=(400, 401, 403, 404, 413, 422, 429, 503))
ROUTES: Final = (
    _route(
        path="/agents/{name}",
        summary="Membership and resource models of a cluster, for its agent.",
        gives=messages.Cluster,
    ),
    _route(
        method="POST",
        path="/agents/{name}/token",
        summary="Create the token of a cluster's agent; requires the server's own token.",
        gives=messages.Token,
    ),
    _route(
        path="/agents/{name}/works",
        summary="Stream the works of a cluster: those after a position, or first a list of all.",
        gives=messages.Line,
        query=FollowQuery,
        is_feed=True,
    ),
    _route(
        path="/agents/{name}/manifest",
        summary="The manifest of a work, overrides included.",
        gives=messages.Manifest,
        query=ManifestQuery,
    ),
    _route(
        path="/agents/{name}/work",
        summary="The newest work of a binding, also if it is removed; a removal of version 0 if there was none.",
        gives=messages.Work,
        query=WorkQuery,
    ),
    _route(
        path="/agents/{name}/namespaces", summary="The namespaces of a cluster.", gives=messages.Namespaces
    ),
    _route(
        method="POST",
        path="/agents/{name}/reports",
        summary="Report the status of a cluster and its workloads.",
        gives=messages.Cluster,
        request=messages.Reports,
    ),
    _route(
        path="/agents/{name}/calls",
        summary="Stream the requests of users to the API of a cluster.",
        gives=messages.Call,
        is_feed=True,
    ),
    _route(
        method="POST",
        path="/agents/{name}/replies",
        summary="Upload the response of the cluster's API to such a request, as the body of this request.",
        gives=messages.Cluster,
        query=ReplyQuery,
    ),
)


def routes(services: Services) -> list[Route]:
    """The routes of agents. Each checks the token itself, because an agent's token is valid for these routes only."""
    agents = _Agents(services, services.write_api, services.tunnels, services.token)
    answers = (
        agents.cluster,
        agents.token,
        agents.works,
        agents.manifest,
        agents.work,
        agents.namespaces,
        agents.reports,
        agents.calls,
        agents.replies,
    )
    return [agents.route(route, answer) for route, answer in zip(ROUTES, answers, strict=True)]


class _Agents:
    def __init__(self, reads: ReadSide, write_api: WriteApi, tunnels: Tunnels, servers_token: str) -> None:
        self._reads = reads
        self._tunnels = tunnels
        self._servers_token = servers_token
        self._reporting = Reporting(write_api)
        self._maker = manifests.Renderer(reads.log)
        self._namespace_changes = NamespaceChanges(reads)
        self._followers: set[Response] = set()

    def route(self, route: ApiRoute, answer: _Answer) -> Route:
        async def guarded(request: Request) -> Response:
            name = str(request.path_params["name"])
            # Check the token before reading anything for the request.
            uid = tokens.read(self._servers_token, request, name)
            # Read the cluster on each request: a token must stop working once another cluster has taken the
            # name.
            cluster = await self._reads.read(lambda rows: clusters.stored(rows, name))
            tokens.check(uid, cluster)
            return await answer(request, name, cluster)

        if route.is_feed:
            return feed_route(route.path, guarded)
        return Route(PREFIX + route.path, guarded, methods=[route.method])

    async def cluster(self, _request: Request, _name: str, cluster: Cluster | None) -> Response:
        return _json(_cluster_message(cluster))

    async def token(self, request: Request, name: str, cluster: Cluster | None) -> Response:
        if not tokens.is_servers_own(self._servers_token, request):
            raise RefusalError(
                403, "authorization", "an agent's token can't create tokens", "use the server's own token"
            )
        if cluster is None:
            raise RefusalError(
                404, "name", f"{name[:253]!r} is not a member cluster", "join the cluster first"
            )
        return _json(messages.Token(token=tokens.agent_token(self._servers_token, cluster)))

    async def works(self, request: Request, name: str, cluster: Cluster | None) -> Response:
        query = read_query(request, FollowQuery)
        if len(self._followers) >= FOLLOWERS_MAX:
            raise RefusalError(
                429, "works", f"the limit of {FOLLOWERS_MAX} agent streams is reached", "try again later"
            )
        is_leaving = cluster is not None and cluster.leaving_ms is not None
        lines = self._follow(name, query.after, is_leaving=is_leaving)
        return CountedStream(lines, NDJSON, self._followers)

    async def manifest(self, request: Request, name: str, _cluster: Cluster | None) -> Response:
        query = read_query(request, ManifestQuery)
        placed = await self._reads.read(lambda rows: agent_queries.placed(rows, name, query.key))
        if placed is None or placed.version != (query.term, query.step):
            raise RefusalError(404, "step", "this work is outdated", "fetch the newest work of the cluster")
        work = placed.work
        source = manifests.RenderInput(
            work.shard,
            work.offset,
            work.replicas,
            work.overrides,
            manifests.sorted_labels(work.labels),
            replica_fields.declared_path(work.reading),
            work.completions,
        )
        made = await self._maker.render(source)
        message = await loop_share.apart(
            len(made.manifest), work_messages.manifest_message, made, placed.propagation
        )
        return _json(message)

    async def work(self, request: Request, name: str, _cluster: Cluster | None) -> Response:
        key = read_query(request, WorkQuery).key
        current = await self._reads.read(lambda rows: agent_queries.placed(rows, name, key))
        if current is not None:
            return _json(work_messages.of_current(key, current.work))
        removal = await self._newest_removal(name, key)
        return _json(removal or messages.Work(key=key, state="removed", term=0, step=0))

    async def _newest_removal(self, name: str, key: str) -> messages.Work | None:
        """Return the newest removal of a binding's work in a cluster that the log contains."""
        before = queries.NUMBER_MAX
        while numbers := await self._reads.read(
            lambda rows, before=before: agent_queries.newest_works(rows, key, before)
        ):
            for number in numbers:
                batch = await self._reads.log.read_all(number - 1, 1)
                if works := await self._counting(name, batch):
                    return works[0][1]
            before = numbers[-1]
        return None

    async def namespaces(self, _request: Request, name: str, cluster: Cluster | None) -> Response:
        propagated = await self._reads.read(lambda rows: member_namespaces.of(rows, name))
        manifests_found = tuple(
            msgspec.Raw(_encode(propagated_object.manifest.document)) for propagated_object in propagated
        )
        keeps_others = cluster is None or cluster.leaving_ms is not None
        return _json(messages.Namespaces(manifests=manifests_found, keeps_others=keeps_others))

    async def reports(self, request: Request, name: str, cluster: Cluster | None) -> Response:
        smaller = "split the reports into smaller requests"
        parsed = await read_body(request, messages.Reports, messages.REPORT_BYTES_MAX, smaller)
        await self._reporting.report(name, parsed, is_member=cluster is not None)
        return _json(_cluster_message(cluster))

    async def calls(self, request: Request, name: str, _cluster: Cluster | None) -> Response:
        uid = tokens.read(self._servers_token, request, name)

        async def may_read() -> bool:
            # Another cluster may have taken the name since the agent connected.
            cluster = await self._reads.read(lambda rows: clusters.stored(rows, name))
            return uid is None or cluster is None or cluster.head.uid == uid

        return StreamingResponse(self._calls(name, may_read), media_type=NDJSON)

    async def replies(self, request: Request, name: str, cluster: Cluster | None) -> Response:
        query = read_query(request, ReplyQuery)
        content_type = request.headers.get("content-type", "")
        chunks = request.stream()
        if not await self._tunnels.reply(name, query.id, query.status, content_type, chunks):
            raise RefusalError(404, "id", "no client waits for this response", "drop it")
        return _json(_cluster_message(cluster))

    async def _calls(self, name: str, may_read: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        async with aclosing(self._tunnels.calls(name, may_read)) as calls:
            async for result in calls:
                if result is None:
                    yield _encode(messages.Call()) + b"\n"
                    continue
                number, call = result
                line = messages.Call(
                    id=number,
                    method=call.method,
                    target=call.target,
                    accept=call.accept,
                    content_type=call.content_type,
                    body=call.body,
                )
                yield _encode(line) + b"\n"

    async def _follow(self, name: str, after: int | None, *, is_leaving: bool) -> AsyncGenerator[bytes]:
        # A position beyond the end is that of a log that was restored from a backup since: works at lower positions
        # would not reach the agent.
        if after is None or after > self._end(name):
            # Sample the end before listing: changes made during the list are then repeated by the feed, not lost.
            after = self._end(name)
            async for line in self._list(name):
                yield line
            if is_leaving:
                # A leaving cluster must report every work as removed, also works that the agent has forgotten; so
                # replay the partition from its beginning.
                after = 0
            yield _line(messages.Line(position=after, is_listed=True))
        async for line in self._feed(name, after):
            yield line

    async def _list(self, name: str) -> AsyncGenerator[bytes]:
        """Yield a line for each current work; the feed that follows repeats changes made meanwhile."""
        after = 0
        while True:
            page = await self._reads.read(lambda rows, after=after: agent_queries.works_of(rows, name, after))
            for placed in page:
                yield _line(messages.Line(work=work_messages.of_current(placed.key, placed.work)))
                after = placed.id
            if len(page) < agent_queries.PAGE:
                return

    async def _feed(self, name: str, after: int) -> AsyncGenerator[bytes]:
        """Yield a line for each new version of a work and each change of namespaces.

        After ``_QUIET_SECONDS`` without a line, yield a line with only the position.
        """
        partition = keys.shard_of(name)
        sent_s = anyio.current_time()
        namespaces: int | None = None
        while True:
            seen = self._reads.views.folded
            if (last := await self._namespace_changes.last()) != namespaces:
                namespaces, sent_s = last, anyio.current_time()
                yield _line(messages.Line(position=after, namespaces=namespaces))
            while after < self._end(name):
                batch = await self._reads.log.read(topics.WORKS, partition, after, _BATCH_RECORDS)
                if not batch:
                    break
                for position, work in await self._counting(name, batch):
                    sent_s = anyio.current_time()
                    yield _line(messages.Line(position=position, work=work))
                after = batch[-1].offset + 1
            # Records of other clusters wake this loop too, so check the elapsed time.
            if anyio.current_time() >= sent_s + _QUIET_SECONDS:
                sent_s = anyio.current_time()
                yield _line(messages.Line(position=after))
            with anyio.move_on_after(sent_s + _QUIET_SECONDS - anyio.current_time()):
                if not await self._reads.is_more(seen):
                    return

    async def _counting(
        self, name: str, batch: Sequence[records.StoredRecord]
    ) -> list[tuple[int, messages.Work]]:
        """Return the valid works of a cluster among these records, each with the offset of the next record.

        Works recorded by a fenced owner have no effect and are left out, as are works that a later record removed.
        """
        works = [
            (record.offset + 1, work)
            for record in batch
            if record.key == name and (work := work_messages.of_record(record)) is not None
        ]
        if not works:
            return []
        work_keys = {work.key for _, work in works}
        current = await self._reads.read(
            lambda rows: {key: agent_queries.placed(rows, name, key) for key in work_keys}
        )
        foreign = await self._reads.read(
            lambda rows: foreign_works(rows, batch[0].partition, batch[0].offset, batch[-1].offset)
        )
        return [
            (position, work)
            for position, work in works
            if position - 1 not in foreign and _is_current(work, current[work.key])
        ]

    def _end(self, name: str) -> int:
        return self._reads.log.ends().get((topics.WORKS, keys.shard_of(name)), 0)


def _is_current(work: messages.Work, current: agent_queries.Placed | None) -> bool:
    """Whether the projection has a work or a later version of it: ``current``, None if the work is removed."""
    if current is None:
        return work.state == "removed"
    return current.version >= work.version


def _cluster_message(cluster: Cluster | None) -> messages.Cluster:
    if cluster is None:
        return messages.Cluster(is_member=False)
    return messages.Cluster(is_member=True, resource_models=cluster.spec.resource_models)


def _line(line: messages.Line) -> bytes:
    return _encode(line) + b"\n"


def _json(body: messages.Shape) -> Response:
    return Response(_encode(body), media_type="application/json")
