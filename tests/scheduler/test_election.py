"""The Lease while the API does not answer some of its requests."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response

from engine.agent.member_api import MemberApi
from engine.bench import karmada_api
from engine.process.replica import clock_ms
from engine.scheduler.election import Election
from tests.background import background
from tests.scheduler.api import Api, serving
from tests.scheduler.scheduling import LEASE, until

WATCHED_S = 12


class Hanging(Api):
    """An API that does not answer the next ``hangs`` requests, as a dead server behind a load balancer."""

    hangs = 0

    async def _answer(self, request: Request) -> Response:
        if self.hangs:
            self.hangs -= 1
            await asyncio.sleep(60)
            return karmada_api.status(504, "Timeout")
        return await super()._answer(request)


@pytest.mark.slow
async def test_leader_continues_to_lead_although_one_request_is_not_answered() -> None:
    api = Hanging()
    async with serving(api) as access:
        client = MemberApi(access)
        election = Election(client, LEASE, "a", clock_ms)
        async with background(election.run(lambda: None)):
            await until(election.leads)
            api.hangs = 1
            await until(lambda: not api.hangs)
            for _ in range(WATCHED_S * 10):
                await asyncio.sleep(0.1)
                assert election.leads()
        await client.aclose()
    assert election.term == 1
