"""A client of the Kubernetes API of a server in this process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx

from engine.http.services import Services
from events.json_values import Json
from tests.api.servers import kube_client, serving

MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"


@asynccontextmanager
async def api() -> AsyncGenerator[tuple[httpx.AsyncClient, Services]]:
    async with serving() as services, kube_client(services) as client:
        yield client, services


async def create(client: httpx.AsyncClient, value: Json) -> Json:
    answer = await client.post(MAPS, json=value)
    assert answer.status_code == 201, answer.text
    return cast("Json", answer.json())


def version(value: Json) -> str:
    return str(cast("Json", value["metadata"])["resourceVersion"])
