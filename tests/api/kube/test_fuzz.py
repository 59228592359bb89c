"""Requests that fit the schemas, or nearly: every answer is a valid Kubernetes answer, and refusals write no event."""

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.kubeapi.schema.resources import Resource
from tests.api.kube.fuzz import FuzzRequest, fuzz_requests, resources
from tests.api.servers import kube_client, serving
from tests.rounds import ROUNDS

PATIENT: Any = list(HealthCheck)
EXAMPLES = 3 * ROUNDS
REQUESTS = 12
REFUSED = 400


@pytest.mark.slow
@pytest.mark.parametrize("resource", resources(), ids=lambda resource: resource.qualified)
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=PATIENT,
    deadline=None,
)
@given(data=st.data())
async def test_every_answer_is_a_valid_kubernetes_answer(resource: Resource, data: st.DataObject) -> None:
    requests = data.draw(st.lists(fuzz_requests(resource), min_size=REQUESTS, max_size=REQUESTS))
    async with serving() as services, kube_client(services) as client:
        for request in requests:
            before = services.log.last_number()
            answer = await _answer(client, request)
            assert answer.status_code < 500, (request, answer.text)
            if answer.status_code >= REFUSED:
                status = answer.json()
                assert (status["kind"], status["code"]) == ("Status", answer.status_code), request
                assert status["message"], request
            if answer.status_code >= REFUSED or request.is_dry or request.method == "GET":
                assert services.log.last_number() == before, (request, answer.text)
        listed = await client.get(
            requests[0].path.rpartition("/" + resource.plural)[0] + f"/{resource.plural}"
        )
        assert listed.status_code == 200, listed.text


async def _answer(client: httpx.AsyncClient, request: FuzzRequest) -> httpx.Response:
    headers = {"content-type": request.type} if request.body else {}
    return await client.request(
        request.method, request.path, params=request.query, content=request.body, headers=headers
    )
