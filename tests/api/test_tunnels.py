"""Requests to a member's API through its agent, when the agent disappears."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from engine.http import tunnels
from engine.http.kube.members.apis import PassedOn
from engine.http.services import Services
from engine.http.tunnels import Call, Tunnels
from tests.api.kube.client import CLUSTERS, api
from tests.builders.inputs import joined
from tests.builders.log_records import record
from tests.builders.manifests import manifest

CLUSTER = "one"
SCOPE = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}
CALL = Call("GET", "/api/v1/pods", "", "", b"")
PROXY = f"{CLUSTERS}/{CLUSTER}/proxy"


async def always() -> bool:
    return True


@asynccontextmanager
async def joined_api() -> AsyncGenerator[tuple[httpx.AsyncClient, Services]]:
    """Yield a client of the Kubernetes API with the cluster, whose API is reached through its agent."""
    async with api() as (client, services):
        cluster = manifest("cluster.karmada.io/v1alpha1", "Cluster", CLUSTER, "", spec={"syncMode": "Pull"})
        assert (await client.post(CLUSTERS, json=cluster)).status_code == 201
        yield client, services


@asynccontextmanager
async def answered(
    open_calls: Tunnels, chunks: AsyncGenerator[bytes]
) -> AsyncGenerator[tuple[tunnels.Reply, asyncio.Task[bool]]]:
    """Yield a request that the agent answers with these chunks, and the agent's upload; then the agent disconnects."""
    async with aclosing(open_calls.calls(CLUSTER, always)) as calls:
        following = asyncio.ensure_future(anext(calls))
        await asyncio.sleep(0)
        asking = asyncio.create_task(open_calls.call(CLUSTER, CALL))
        result = await following
        assert result is not None
        upload = asyncio.create_task(open_calls.reply(CLUSTER, result[0], 200, "text/plain", chunks))
        yield await asking, upload


async def test_response_that_the_agent_does_not_complete_is_not_shown_as_complete() -> None:
    async def cut() -> AsyncGenerator[bytes]:
        yield b"half"
        raise ClientDisconnect

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async with answered(Tunnels(), cut()) as (reply, upload):
        await PassedOn(reply)(SCOPE, receive, send)
        assert await upload
    assert [message.get("body") for message in sent[1:]] == [b"half"]
    assert all(message["more_body"] for message in sent[1:])


async def test_response_ends_when_the_connection_of_its_agent_ends() -> None:
    async def quiet() -> AsyncGenerator[bytes]:
        yield b"half"
        await asyncio.Event().wait()

    async with answered(Tunnels(), quiet()) as (reply, upload):
        assert await anext(reply.chunks) == b"half"
    async with asyncio.timeout(5):
        with pytest.raises(tunnels.IncompleteError):
            await anext(reply.chunks)
        assert await upload


async def test_requests_that_a_replaced_connection_did_not_read_are_moved() -> None:
    open_calls = Tunnels()
    async with (
        aclosing(open_calls.calls(CLUSTER, always)) as former,
        aclosing(open_calls.calls(CLUSTER, always)) as later,
    ):
        following = asyncio.ensure_future(anext(former))
        await asyncio.sleep(0)
        asking = [asyncio.create_task(open_calls.call(CLUSTER, CALL)) for _ in range(3)]
        assert await following is not None  # the connection breaks here; its agent reads no other request
        async with asyncio.timeout(5):
            read = [await anext(later) for _ in range(2)]
        assert [call for _, call in filter(None, read)] == [CALL, CALL]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def test_requests_of_a_closed_connection_fail_at_once() -> None:
    open_calls = Tunnels()
    async with aclosing(open_calls.calls(CLUSTER, always)) as calls:
        following = asyncio.ensure_future(anext(calls))
        await asyncio.sleep(0)
        asking = [asyncio.create_task(open_calls.call(CLUSTER, CALL)) for _ in range(2)]
        assert await following is not None
    async with asyncio.timeout(5):
        read, unread = await asyncio.gather(*asking, return_exceptions=True)
    assert type(read) is tunnels.UnansweredError
    assert type(unread) is tunnels.NotReachableError


async def test_request_whose_client_has_left_is_not_sent_to_the_agent() -> None:
    open_calls = Tunnels()
    async with aclosing(open_calls.calls(CLUSTER, always)) as calls:
        following = asyncio.ensure_future(anext(calls))
        await asyncio.sleep(0)
        deletion = Call("DELETE", "/api/v1/pods/web", "", "", b"")
        asking = [asyncio.create_task(open_calls.call(CLUSTER, call)) for call in (CALL, deletion, CALL)]
        assert await following is not None
        asking[1].cancel()
        await asyncio.wait([asking[1]])
        async with asyncio.timeout(5):
            assert ((await anext(calls)) or ("", deletion))[1] == CALL
    asking[0].cancel()
    asking[2].cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("api/v1/namespaces/a/secrets/one%3F/scale", "/api/v1/namespaces/a/secrets/one%3F/scale"),
        ("api/v1/namespaces/a/secrets/one%23/scale?a=%3F", "/api/v1/namespaces/a/secrets/one%23/scale?a=%3F"),
        ("api/v1/namespaces/a/secrets/%252e%0d", "/api/v1/namespaces/a/secrets/%252e%0D"),
        ("apis/a.b/v1/roles/system:x%20%C3%A4", "/apis/a.b/v1/roles/system:x%20%C3%A4"),
    ],
)
async def test_request_names_the_same_object_behind_the_agent(path: str, target: str) -> None:
    async with joined_api() as (client, services):
        async with aclosing(services.tunnels.calls(CLUSTER, always)) as calls:
            following = asyncio.ensure_future(anext(calls))
            await asyncio.sleep(0)
            asking = asyncio.create_task(client.get(f"{PROXY}/{path}"))
            number, call = await following or ("", CALL)

            async def chunks() -> AsyncGenerator[bytes]:
                yield b"{}"

            assert await services.tunnels.reply(CLUSTER, number, 200, "application/json", chunks())
            assert (await asking).status_code == 200
        assert (call or CALL).target == target


async def test_cluster_that_another_replica_has_just_stored_is_found() -> None:
    async with api() as (client, services):
        await services.log.append([record(joined(CLUSTER))])
        answer = await client.get(f"{PROXY}/api")
        assert answer.status_code == 503, answer.text
        assert "is not connected to this server" in answer.json()["message"]


async def test_request_whose_agent_disconnects_gets_an_unknown_outcome() -> None:
    async with joined_api() as (client, services):
        async with aclosing(services.tunnels.calls(CLUSTER, always)) as calls:
            following = asyncio.ensure_future(anext(calls))
            await asyncio.sleep(0)
            asking = asyncio.create_task(client.delete(f"{PROXY}/api/v1/nodes/n"))
            assert await following is not None
        async with asyncio.timeout(5):
            answer = await asking
    assert answer.status_code == 504
    assert "may have carried out the request" in answer.json()["message"]
