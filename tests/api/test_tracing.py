"""Trace context and user of a request are stored in the envelopes of the records that it wrote."""

import anyio

from engine.http.services import Services
from events.records import from_headers
from events.tracing import NO_TRACE, Trace
from tests.api.kube.client import MERGE, api
from tests.api.servers import client, kube_client, serving
from tests.builders.manifests import manifest

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-{span:016x}-01"
CONFIGS = "/api/v1/namespaces/default/configmaps"


def config(name: str) -> dict[str, object]:
    """Return a ConfigMap."""
    return manifest("v1", "ConfigMap", name)


async def traces(services: Services) -> list[Trace]:
    """Return the trace of each record, in order."""
    return [from_headers(record.headers).trace for record in await services.log.read_all(0, 1000)]


async def test_trace_of_a_request_is_stored() -> None:
    async with api() as (kube, services):
        headers = [("traceparent", PARENT.format(span=1)), ("tracestate", "a=1"), ("tracestate", "b=2")]
        await kube.post(CONFIGS, json=config("a"), headers=headers)
        await kube.patch(f"{CONFIGS}/a", json={"data": {"b": "c"}}, headers=MERGE)
        assert await traces(services) == [Trace(PARENT.format(span=1), "a=1,b=2"), NO_TRACE]


async def test_concurrent_requests_keep_their_own_traces() -> None:
    async with api() as (kube, services):

        async def create(span: int) -> None:
            headers = {"traceparent": PARENT.format(span=span)}
            answer = await kube.post(CONFIGS, json=config(f"a-{span}"), headers=headers)
            assert answer.status_code == 201

        async with anyio.create_task_group() as tasks:
            for span in range(1, 11):
                tasks.start_soon(create, span)
        named = {
            record.key.split("-")[1]: from_headers(record.headers).traceparent
            for record in await services.log.read_all(0, 1000)
        }
        assert named == {str(span): PARENT.format(span=span) for span in range(1, 11)}


async def test_malformed_trace_is_ignored() -> None:
    async with api() as (kube, services):
        await kube.post(CONFIGS, json=config("a"), headers={"traceparent": "00-1-2-3"})
        assert await traces(services) == [NO_TRACE]


async def test_user_of_a_request_is_stored_and_shown() -> None:
    async with serving() as services, kube_client(services) as kube, client(services) as queries:
        users = ("alice", "system:serviceaccount:shop:deployer", "system:anonymous", "x" * 20_000)
        for index, user in enumerate(users):
            answer = await kube.post(CONFIGS, json=config(f"a-{index}"), headers={"impersonate-user": user})
            assert answer.status_code == 403
        await kube.post(CONFIGS, json=config("a"))
        for index, user in enumerate(users):
            headers = {"impersonate-user": user, "impersonate-group": "system:masters"}
            answer = await kube.post(CONFIGS, json=config(f"a-{index}"), headers=headers)
            assert answer.status_code == 201, answer.text
        heads = [from_headers(record.headers) for record in await services.log.read_all(0, 1000)]
        assert [(head.authtype, head.authid) for head in heads] == [
            ("user", "reballast-admin"),
            ("user", "alice"),
            ("service_account", "system:serviceaccount:shop:deployer"),
            ("unauthenticated", "system:anonymous"),
            ("user", "x" * 512),
        ]
        shown = (await queries.get("/api/v1/timeline/default/a-0-configmap")).json()
        assert [entry["user"] for entry in shown["items"]] == ["alice"]
