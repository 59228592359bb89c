"""The agent API: an agent reads and reports its own cluster, and no other."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest
from msgspec import structs

from engine.agent import messages
from engine.agent.gateway_client import GatewayClient
from engine.http.agents import routes
from engine.http.services import Services
from engine.http.tunnels import Call, NotReachableError, Queued
from engine.kubeapi.rights import service_tokens
from engine.log import port
from engine.log.local import MemoryLog
from events import clusters, codec, health, keys, records, shapes, specs, topics, works
from projections import query
from tests.api import feeds
from tests.api.servers import TOKEN, application, client, on_a_port, serving
from tests.projections.logs import RecordBuilder

KEY = "default/web-deployment"
REF = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
MANIFEST = b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"}}'


def record(event: shapes.Event, key: str, count: int) -> records.Record:
    topic = event.event_type.topic
    partition = 0 if topic == topics.CLUSTERS else keys.shard_of(key)
    head = records.Envelope(id=f"test-{count}", source="/tests", type="", subject=key)
    return codec.encode(event, head, partition=partition, key=key)


def applied(cluster: str, step: int) -> works.WorkApplied:
    return works.WorkApplied(
        cluster=cluster,
        key=KEY,
        template=REF,
        shard=keys.shard_of(KEY),
        offset=0,
        digest="d1",
        term=1,
        step=step,
        replicas=2,
    )


def opening() -> list[records.Record]:
    events: Sequence[tuple[shapes.Event, str]] = [
        (clusters.ClusterJoined(name="one"), "one"),
        (clusters.ClusterJoined(name="two"), "two"),
        (specs.TemplateApplied(manifest=msgspec.Raw(MANIFEST)), KEY),
    ]
    return [record(event, key, count) for count, (event, key) in enumerate(events)]


@asynccontextmanager
async def agent_of(services: Services, name: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client with the agent token that the server issued for a cluster."""
    async with client(services) as own:
        made = await own.post(f"/api/v1/agents/{name}/token")
    async with client(services, made.json()["token"]) as agent:
        yield agent


async def test_agent_token_is_limited_to_its_own_cluster() -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        assert (await agent.get("/api/v1/agents/one")).json() == {"isMember": True}
        refused = [
            await agent.get("/api/v1/agents/two"),
            await agent.get("/api/v1/agents/two/manifest", params={"key": KEY, "term": 1, "step": 2}),
            await agent.post("/api/v1/agents/two/reports", json={"id": "a", "reports": []}),
            await agent.post("/api/v1/agents/one/token"),
        ]
        assert [answer.status_code for answer in refused] == [403] * 4
        others = [
            await agent.get("/api/v1/bindings"),
            await agent.post("/kubernetes/api/v1/namespaces", content=b"{}"),
        ]
        assert [answer.status_code for answer in others] == [401] * 2
    async with serving(opening()) as services, client(services, "") as nobody:
        assert (await nobody.get("/api/v1/agents/one")).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        service_tokens.Claims(sub="system:member:one", member="one"),
        service_tokens.Claims(sub="system:agent:one", agent="one", uid="that of a former cluster"),
    ],
)
async def test_other_tokens_are_refused_by_the_agent_api(claims: service_tokens.Claims) -> None:
    async with serving(opening()) as services:
        token = service_tokens.signed(claims, service_tokens.key_of(services.token))
        async with client(services, token) as stranger:
            assert (await stranger.get("/api/v1/agents/one")).status_code == 403


async def test_work_without_a_valid_step_is_not_shown() -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        await services.log.append([record(applied("one", 2), "one", 10)])
        answer = await agent.get("/api/v1/agents/one/manifest", params={"key": KEY, "term": 1, "step": 2})
        assert answer.status_code == 404
        services.stopping.set()
        feed = await agent.get("/api/v1/agents/one/works")
        lines = [msgspec.json.decode(line, type=messages.Line) for line in feed.content.splitlines()]
        assert lines[0] == messages.Line(position=1, is_listed=True)
        assert not [line for line in lines if line.work is not None]


async def test_feeds_of_agents_that_connect_together_do_not_exceed_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "FOLLOWERS_MAX", 2)
    async with serving(opening()) as services:
        app = application(services)
        for _ in range(2):
            statuses = await feeds.statuses(app, "/api/v1/agents/one/works", 5, send_s=0.05)
            assert statuses == [200, 200, 429, 429, 429]


@pytest.mark.parametrize(("after", "is_listed"), [(2, False), (3, True)])
async def test_works_are_listed_again_if_the_position_is_beyond_the_end_of_the_log(
    after: int, is_listed: bool
) -> None:
    step = RecordBuilder().step(keys.shard_of(KEY), [applied("one", 1), applied("one", 1)])
    async with serving([*opening(), *step]) as services, agent_of(services, "one") as agent:
        services.stopping.set()
        feed = await agent.get("/api/v1/agents/one/works", params={"after": after})
        lines = [msgspec.json.decode(line, type=messages.Line) for line in feed.content.splitlines()]
    assert any(line.is_listed for line in lines) == is_listed
    assert any(line.work is not None for line in lines) == is_listed


async def test_removal_of_a_work_is_found_after_it_has_left_the_list() -> None:
    shard = keys.shard_of(KEY)
    builder = RecordBuilder()
    removed = works.WorkRemoved(cluster="one", key=KEY, term=1, step=2, preserved=True)
    steps = [*builder.step(shard, [applied("one", 1)]), *builder.step(shard, [removed])]
    async with serving([*opening(), *steps]) as services, agent_of(services, "one") as agent:
        removal = await _newest_work(agent, KEY)
        unknown = await _newest_work(agent, "default/other-deployment")
    assert removal == messages.Work(key=KEY, state="removed", term=1, step=2, preserved=True)
    assert (unknown.state, unknown.term, unknown.step) == ("removed", 0, 0)


async def _newest_work(agent: httpx.AsyncClient, key: str) -> messages.Work:
    answer = await agent.get("/api/v1/agents/one/work", params={"key": key})
    return msgspec.json.decode(answer.content, type=messages.Work)


class CountingLog(MemoryLog):
    """A log that counts its reads by number."""

    reads = 0

    async def read_all(self, after: int, limit: int) -> list[records.StoredRecord]:
        self.reads += 1
        return await super().read_all(after, limit)


async def test_removal_is_found_without_reading_later_reports() -> None:
    builder, shard = RecordBuilder(), keys.shard_of(KEY)
    removed = works.WorkRemoved(cluster="one", key=KEY, term=1, step=2)
    reports = [
        record(health.WorkloadReported(cluster="two", key=KEY, term=1, step=1, ready=count), KEY, 10 + count)
        for count in range(300)
    ]
    history = [
        *opening(),
        *builder.step(shard, [applied("one", 1), applied("two", 1)]),
        *builder.step(shard, [removed]),
        *reports,
    ]
    log = CountingLog()
    async with serving(history, log) as services, agent_of(services, "one") as agent:
        timeline = await services.read(lambda rows: query.newest(rows, KEY, limit=1_000))
        log.reads = 0
        removal = await _newest_work(agent, KEY)

    assert (removal.state, removal.step) == ("removed", 2)
    assert len(timeline) > len(reports)
    assert log.reads == 1


async def test_newest_work_of_a_workload_that_was_placed_again_is_no_removal() -> None:
    builder, shard = RecordBuilder(), keys.shard_of(KEY)
    removed = works.WorkRemoved(cluster="one", key=KEY, term=1, step=2, preserved=True)
    steps = [
        step
        for event in (applied("one", 1), removed, applied("one", 3))
        for step in builder.step(shard, [event])
    ]
    async with serving([*opening(), *steps]) as services, agent_of(services, "one") as agent:
        newest = await _newest_work(agent, KEY)
    assert (newest.state, newest.step, newest.template) == ("applied", 3, REF)


async def test_feed_with_line_separators_in_a_name_is_read() -> None:
    # Names of RBAC objects may have any characters but / and %.
    key = keys.binding_key("ClusterRole", "", "a\u2028b\u0085c")
    ref = shapes.WorkloadRef(
        api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", name="a\u2028b\u0085c"
    )
    work = structs.replace(applied("one", 1), key=key, template=ref, shard=keys.shard_of(key))
    records_of_step = RecordBuilder().step(keys.shard_of(key), [work])
    with on_a_port([*opening(), *records_of_step]) as served:
        control = GatewayClient(served.url, TOKEN, "one")
        lines = [line async for line in _until_listed(control)]
        await control.aclose()
    assert [line.work.key for line in lines if line.work is not None] == [key]


async def _until_listed(control: GatewayClient) -> AsyncGenerator[messages.Line]:
    async with contextlib.aclosing(control.follow(None)) as feed:
        async for line in feed:
            yield line
            if line.is_listed:
                return


async def test_repeated_reports_are_counted_once_and_only_for_the_own_cluster() -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        reports = messages.Reports(
            id="boot-1",
            reports=(
                messages.WorkloadReport(key=KEY, term=1, step=2, replicas=2, ready=1, healthy=False),
                messages.CapacityReport(allocatable={"cpu": "4"}, nodes=1, nodes_ready=1),
                messages.HealthReport(ready=True, grace_seconds=40, reason="ClusterReady"),
                messages.GoneReport(key=KEY, term=1, step=3),
            ),
        )
        for _ in range(2):
            answer = await agent.post("/api/v1/agents/one/reports", content=msgspec.json.encode(reports))
            assert answer.status_code == 200
        decoded = [codec.decode(stored) for stored in await services.log.read_all(3, 100)]
        events = [entry.data for entry in decoded if isinstance(entry, codec.Decoded)]
        reported = events[0]
        assert isinstance(reported, health.WorkloadReported)
        assert (reported.cluster, reported.ready, reported.healthy) == ("one", 1, False)
        sources = {entry.envelope.source for entry in decoded if isinstance(entry, codec.Decoded)}
        assert sources == {"/reballast/agents/one"}
        # The same ids are sent twice: a fold counts them once.
        ids = [entry.envelope.id for entry in decoded if isinstance(entry, codec.Decoded)]
        assert ids == [f"boot-1-{index}" for index in range(4)] * 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"id":"a","reports":[{"type":"capacity","allocatable":{"cpu":"much"}}]}', 422),
        (
            b'{"id":"a","reports":[{"type":"apis","apis":[]},{"type":"capacity","allocatable":{"a":"b"}}]}',
            422,
        ),
        (b'{"id":"a","reports":[{"type":"workload","key":"","term":1,"step":1}]}', 400),
        (b'{"id":"a","reports":[{"type":"workload","key":"k","term":-1,"step":1}]}', 400),
        (b'{"id":"a b","reports":[]}', 400),
        (b'{"id":"a","reports":[{"type":"unknown"}]}', 400),
        (b"[" * 100_000, 400),
        (b" " * (messages.REPORT_BYTES_MAX + 1), 413),
    ],
)
async def test_batch_with_an_invalid_report_is_refused(body: bytes, status: int) -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        before = services.log.last_number()
        answer = await agent.post("/api/v1/agents/one/reports", content=body)
        assert answer.status_code == status
        assert services.log.last_number() == before


async def test_report_of_kinds_whose_append_has_an_unknown_outcome_is_requested_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        kinds = (clusters.ApiKind(group_version="v1", kinds=("Pod",)),)
        body = msgspec.json.encode(messages.Reports(id="a", reports=(messages.ApisReport(apis=kinds),)))

        async def failing(_batch: Sequence[records.Record]) -> Sequence[records.StoredRecord]:
            raise port.OutcomeUnknownError("the broker did not answer")

        with monkeypatch.context() as patched:
            patched.setattr(services.log, "append", failing)
            assert (await agent.post("/api/v1/agents/one/reports", content=body)).status_code == 503
        assert (await agent.post("/api/v1/agents/one/reports", content=body)).status_code == 200


async def test_connected_agent_of_an_earlier_cluster_gets_no_requests_to_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        connected, calls = asyncio.Event(), services.tunnels.calls

        def connect(cluster: str, may_read: Callable[[], Awaitable[bool]]) -> AsyncGenerator[Queued | None]:
            connected.set()
            return calls(cluster, may_read)

        monkeypatch.setattr(services.tunnels, "calls", connect)
        feed = asyncio.create_task(agent.get("/api/v1/agents/one/calls"))
        await connected.wait()
        await asyncio.sleep(0.1)
        successor = [(clusters.ClusterLeft(name="one"), 30), (clusters.ClusterJoined(name="one"), 31)]
        await services.log.append([record(event, "one", count) for event, count in successor])
        async with asyncio.timeout(5):
            with pytest.raises(NotReachableError, match="does not respond"):
                await services.tunnels.call("one", Call("DELETE", "/api/v1/nodes/n", "", "", b""))
            assert not (await feed).content


async def test_connected_agent_of_an_earlier_cluster_gets_no_works_of_its_successor() -> None:
    builder, shard = RecordBuilder(), keys.shard_of(KEY)
    history = [*opening(), *builder.step(shard, [applied("one", 1)])]
    successor = [(clusters.ClusterLeft(name="one"), 30), (clusters.ClusterJoined(name="one"), 31)]
    later = [
        *(record(event, "one", count) for event, count in successor),
        *builder.step(shard, [applied("one", 2)]),
    ]
    async with serving(history) as services, agent_of(services, "one") as agent, asyncio.timeout(10):
        feed = asyncio.create_task(agent.get("/api/v1/agents/one/works"))
        await asyncio.sleep(0.3)
        await services.log.append(later)
        lines = [msgspec.json.decode(line, type=messages.Line) for line in (await feed).content.splitlines()]
    assert [line.work.step for line in lines if line.work is not None] == [1]


@pytest.mark.parametrize(("successor", "status"), [(False, 200), (True, 403)])
async def test_reports_that_arrive_after_the_end_of_their_cluster_are_dropped(
    successor: bool, status: int
) -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        ends: list[shapes.Event] = [clusters.ClusterLeft(name="one")]
        ends += [clusters.ClusterJoined(name="one")] if successor else []

        async def body() -> AsyncGenerator[bytes]:
            yield b'{"id":"b","reports":[{"type":"capacity","allocatable":'
            await services.log.append([record(event, "one", 30 + count) for count, event in enumerate(ends)])
            yield b'{"cpu":"4"}}]}'

        answer = await agent.post("/api/v1/agents/one/reports", content=body())
        assert answer.status_code == status
        assert services.log.last_number() == len(opening()) + len(ends)


async def test_agent_of_a_removed_cluster_learns_it_and_cannot_report() -> None:
    async with serving(opening()) as services, agent_of(services, "one") as agent:
        await services.log.append([record(clusters.ClusterLeft(name="one"), "one", 20)])
        before = services.log.last_number()
        body = msgspec.json.encode(
            messages.Reports(id="b", reports=(messages.HealthReport(ready=True, grace_seconds=40),))
        )
        answer = await agent.post("/api/v1/agents/one/reports", content=body)
        assert answer.json() == {"isMember": False}
        assert services.log.last_number() == before


@pytest.mark.parametrize("path", ["works", "calls"])
async def test_head_of_a_feed_is_refused(path: str) -> None:
    async with serving(opening()) as services, agent_of(services, "one") as http, asyncio.timeout(10):
        assert (await http.head(f"/api/v1/agents/one/{path}")).status_code == 405
