"""Deletions of namespaces that a stop interrupted continue at the next start, and touch no other namespace."""

import asyncio

import httpx

from engine.http.kube.app import create_app
from engine.http.services import Services
from tests.api.servers import NOW_MS, TOKEN, serving
from tests.builders.manifests import config_map

NAMESPACES = "/api/v1/namespaces"
SECONDS = 20


def client(services: Services) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(services, lambda: NOW_MS)),
        base_url="http://kube",
        headers={"authorization": f"Bearer {TOKEN}"},
    )


async def create(kube: httpx.AsyncClient, name: str, labels: dict[str, str]) -> None:
    metadata = {"name": name, "labels": labels}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    (await kube.post(NAMESPACES, json=namespace)).raise_for_status()
    content = config_map("content", name)
    (await kube.post(f"{NAMESPACES}/{name}/configmaps", json=content)).raise_for_status()


async def test_interrupted_deletion_continues_and_keeps_a_namespace_with_a_protected_object() -> None:
    stopping = asyncio.Event()
    async with serving() as services, client(services) as kube:
        await create(kube, "labelled", {"deletionTimestamp": "never"})
        await create(kube, "leaving", {})
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        assert (await kube.get(f"{NAMESPACES}/leaving/configmaps/content")).status_code == 200

        running = asyncio.create_task(create_app(services, lambda: NOW_MS).run(stopping))
        async with asyncio.timeout(SECONDS):
            seen = services.log.moves()
            while (await kube.get(f"{NAMESPACES}/leaving")).status_code != 404:
                await services.log.wait(seen)
                seen = services.log.moves()
        stopping.set()
        await running
        assert (await kube.get(f"{NAMESPACES}/labelled/configmaps/content")).status_code == 200
