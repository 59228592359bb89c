"""The agents' API, under ``/api/v1/agents/NAME``: the works of one cluster, their manifests, and reports.

An agent sees nothing else of the log, and only manifests that its cluster must run now.

Agents' tokens are signed like service account tokens, and valid for one cluster identified by its uid. A token stays
valid after its cluster has left, so that the agent can still receive removals, until another cluster joins under that
name.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from engine import loop_share
from engine.agent import messages
from engine.domain import replica_fields
from engine.http import member_namespaces
from engine.http.agents import work_feed
from engine.http.agents.reports import Reporting
from engine.http.agents.work_feed import WorkFeed
from engine.http.counted_responses import CountedStream
from engine.http.errors import RefusalError
from engine.http.incoming_requests import bearer_token, is_same
from engine.http.query import parameters
from engine.http.query.api_routes import PREFIX, ApiRoute, feed_route, read_body, read_query
from engine.http.services import Services
from engine.http.tunnels import Tunnels
from engine.kubeapi.rights import service_tokens
from engine.works import manifests
from engine.writing.read_side import ReadSide
from engine.writing.write_api import WriteApi
from events.json_values import canonical_json
from projections import agent_queries, clusters
from projections.clusters import Cluster

FOLLOWERS_MAX: Final = 4_096
NDJSON: Final = "application/x-ndjson"
_REMEDY: Final = "create the agent's token with: reballast join"


class _Caller(NamedTuple):
    """The cluster that a request is about, and the cluster uid in its token; the server's own token has no uid."""

    name: str
    uid: str | None
    cluster: Cluster | None


_Answer = Callable[[Request, _Caller], Awaitable[Response]]


class FollowQuery(parameters.Query, frozen=True, kw_only=True):
    """The offset to continue from, as a previous feed reported it; without an offset, the feed begins with a list."""

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
        self._key = service_tokens.key_of(servers_token)
        self._reporting = Reporting(write_api)
        self._maker = manifests.Renderer(reads.log)
        self._feed = WorkFeed(reads)
        self._followers: set[Response] = set()

    def route(self, route: ApiRoute, answer: _Answer) -> Route:
        async def guarded(request: Request) -> Response:
            name = str(request.path_params["name"])
            # Check the token before reading anything for the request.
            uid = self._uid_in_token(request, name)
            return await answer(request, await self._caller(name, uid))

        if route.is_feed:
            return feed_route(route.path, guarded)
        return Route(PREFIX + route.path, guarded, methods=[route.method])

    async def _caller(self, name: str, uid: str | None) -> _Caller:
        # Read the cluster on each request: a token must stop working once another cluster has taken the name.
        cluster = await self._reads.read(lambda rows: clusters.stored(rows, name))
        if uid is not None and cluster is not None and cluster.head.uid != uid:
            raise RefusalError(
                403, "authorization", "the token belongs to an earlier cluster of this name", _REMEDY
            )
        return _Caller(name, uid, cluster)

    def _uid_in_token(self, request: Request, name: str) -> str | None:
        """Check the token; return the uid of the cluster that it is for, None for the server's own token.

        Raises RefusalError: 401 for an invalid token, 403 for the token of another cluster.
        """
        if self._is_servers_own(request):
            return None
        try:
            claims = service_tokens.read(bearer_token(request.headers), self._key, 0)
        except service_tokens.TokenError as error:
            raise RefusalError(401, "authorization", str(error), _REMEDY) from None
        if not claims.agent or claims.agent != name:
            raise RefusalError(
                403, "authorization", f"the token is not valid for cluster {name[:253]!r}", _REMEDY
            )
        return claims.uid

    def _is_servers_own(self, request: Request) -> bool:
        """Whether the request carries the server's own (administrator's) token."""
        return is_same(bearer_token(request.headers), self._servers_token)

    async def cluster(self, _request: Request, caller: _Caller) -> Response:
        return _json(_cluster_message(caller.cluster))

    async def token(self, request: Request, caller: _Caller) -> Response:
        if not self._is_servers_own(request):
            raise RefusalError(
                403, "authorization", "an agent's token can't create tokens", "use the server's own token"
            )
        if caller.cluster is None:
            raise RefusalError(
                404, "name", f"{caller.name[:253]!r} is not a member cluster", "join the cluster first"
            )
        # The token never expires, and is the same on each call for the same cluster.
        claims = service_tokens.Claims(
            sub=f"system:agent:{caller.name}", uid=caller.cluster.head.uid, agent=caller.name
        )
        return _json(messages.Token(token=service_tokens.signed(claims, self._key)))

    async def works(self, request: Request, caller: _Caller) -> Response:
        query = read_query(request, FollowQuery)
        if len(self._followers) >= FOLLOWERS_MAX:
            raise RefusalError(
                429, "works", f"the limit of {FOLLOWERS_MAX} agent streams is reached", "try again later"
            )
        is_leaving = caller.cluster is not None and caller.cluster.leaving_ms is not None
        lines = self._feed.follow(
            caller.name, query.after, partial(self._may_read, caller), is_leaving=is_leaving
        )
        return CountedStream(lines, NDJSON, self._followers)

    async def manifest(self, request: Request, caller: _Caller) -> Response:
        query = read_query(request, ManifestQuery)
        placed = await self._reads.read(lambda rows: agent_queries.placed(rows, caller.name, query.key))
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
        message = await loop_share.in_thread_if_large(
            len(made.manifest), work_feed.manifest_message, made, placed.mark_values
        )
        return _json(message)

    async def work(self, request: Request, caller: _Caller) -> Response:
        key = read_query(request, WorkQuery).key
        current = await self._reads.read(lambda rows: agent_queries.placed(rows, caller.name, key))
        if current is not None:
            return _json(work_feed.of_current(key, current.work))
        removal = await self._feed.newest_removal(caller.name, key)
        return _json(removal or messages.Work(key=key, state="removed", term=0, step=0))

    async def namespaces(self, _request: Request, caller: _Caller) -> Response:
        propagated = await self._reads.read(lambda rows: member_namespaces.of(rows, caller.name))
        manifests_found = tuple(
            msgspec.Raw(canonical_json(propagated_object.manifest.document))
            for propagated_object in propagated
        )
        keeps_others = caller.cluster is None or caller.cluster.leaving_ms is not None
        return _json(messages.Namespaces(manifests=manifests_found, keeps_others=keeps_others))

    async def reports(self, request: Request, caller: _Caller) -> Response:
        smaller = "split the reports into smaller requests"
        parsed = await read_body(request, messages.Reports, messages.REPORT_BYTES_MAX, smaller)
        # Check the caller again: the body may have taken minutes, and another cluster may have the name now.
        caller = await self._caller(caller.name, caller.uid)
        await self._reporting.report(caller.name, parsed, is_member=caller.cluster is not None)
        return _json(_cluster_message(caller.cluster))

    async def calls(self, _request: Request, caller: _Caller) -> Response:
        calls = self._calls(caller.name, partial(self._may_read, caller))
        return StreamingResponse(calls, media_type=NDJSON)

    async def replies(self, request: Request, caller: _Caller) -> Response:
        query = read_query(request, ReplyQuery)
        content_type = request.headers.get("content-type", "")
        chunks = request.stream()
        if not await self._tunnels.reply(caller.name, query.id, query.status, content_type, chunks):
            raise RefusalError(404, "id", "no client waits for this response", "drop it")
        return _json(_cluster_message(caller.cluster))

    async def _may_read(self, caller: _Caller) -> bool:
        """Whether no other cluster has taken the name since the agent connected."""
        cluster = await self._reads.read(lambda rows: clusters.stored(rows, caller.name))
        return caller.uid is None or cluster is None or cluster.head.uid == caller.uid

    async def _calls(self, name: str, may_read: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        async with aclosing(self._tunnels.calls(name, may_read)) as calls:
            async for result in calls:
                if result is None:
                    yield canonical_json(messages.Call()) + b"\n"
                    continue
                number, call = result
                if call is None:
                    yield canonical_json(messages.Call(id=number, is_ended=True)) + b"\n"
                    continue
                yield canonical_json(messages.Call(id=number, **call._asdict())) + b"\n"


def _cluster_message(cluster: Cluster | None) -> messages.Cluster:
    if cluster is None:
        return messages.Cluster(is_member=False)
    return messages.Cluster(is_member=True, resource_models=cluster.spec.resource_models)


def _json(body: messages.Shape) -> Response:
    return Response(canonical_json(body), media_type="application/json")
