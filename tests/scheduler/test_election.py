"""The Lease: who may take it, and what happens while the API does not answer some requests."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import structlog
import structlog.testing
from starlette.requests import Request
from starlette.responses import Response

from engine.agent.member_api import MemberApi
from engine.bench import karmada_api
from engine.process.replica import clock_ms
from engine.scheduler import election as elections
from engine.scheduler.election import Election
from tests.background import background
from tests.scheduler.api import Api, Json, serving
from tests.scheduler.scheduling import LEASE
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

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
            await until_async(election.leads)
            api.hangs = 1
            await until_async(lambda: not api.hangs)
            for _ in range(WATCHED_S * 10):
                await asyncio.sleep(0.1)
                assert election.leads()
        await client.aclose()
    assert election.term == 1


@asynccontextmanager
async def campaigning(api: Api, identity: str) -> AsyncGenerator[Election]:
    """Campaign for the Lease until the block ends."""
    async with serving(api) as access:
        client = MemberApi(access)
        election = Election(client, LEASE, identity, clock_ms)
        async with background(election.run(lambda: None)):
            yield election
        await client.aclose()


def lease_of(api: Api) -> Json:
    (lease,) = api.of_kind("leases")
    return dict(lease["spec"])


def hold(api: Api, holder: str, **spec: object) -> None:
    """Write the Lease as another process does."""
    metadata = {"namespace": LEASE.namespace, "name": LEASE.name}
    fields = {"holderIdentity": holder, "leaseTransitions": 3, "acquireTime": "x", **spec}
    api.put("leases", {"metadata": metadata, "spec": fields})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "_RETRY_S", 0.05)


@pytest.mark.usefixtures("quick")
async def test_lease_of_another_process_is_taken_once_it_is_not_renewed_for_its_duration() -> None:
    api, renewed_s = Api(), time.monotonic()
    hold(api, "b", leaseDurationSeconds=1)
    async with campaigning(api, "a") as election:
        for number in range(6):
            renewed_s = time.monotonic()
            hold(api, "b", leaseDurationSeconds=1, renewTime=f"{number}")
            await asyncio.sleep(0.2)
            assert not election.leads() or time.monotonic() - renewed_s >= 1
        await until_async(election.leads)
        assert time.monotonic() - renewed_s >= 1
        assert (lease_of(api)["holderIdentity"], lease_of(api)["leaseTransitions"]) == ("a", 4)
        assert lease_of(api)["acquireTime"] != "x"


@pytest.mark.usefixtures("quick")
async def test_lease_without_a_duration_is_left_to_its_holder() -> None:
    api = Api()
    hold(api, "b")
    async with campaigning(api, "a") as election:
        await asyncio.sleep(0.5)
        assert not election.leads()
    assert lease_of(api)["holderIdentity"] == "b"


@pytest.mark.usefixtures("quick")
async def test_released_lease_is_taken_at_once_and_released_again() -> None:
    api = Api()
    hold(api, "", leaseDurationSeconds=15)
    async with campaigning(api, "a") as election:
        await until_async(election.leads, 2)
        await until_async(lambda: len(api.writes) > 3)
        assert lease_of(api)["leaseTransitions"] == 4, "a renewal is no transition"
        assert election.term == 1
    assert lease_of(api)["holderIdentity"] == ""
    assert not election.leads()


@pytest.mark.usefixtures("quick")
async def test_leader_whose_lease_another_process_has_taken_leads_no_longer_and_leaves_it() -> None:
    api = Api()
    async with campaigning(api, "a") as election:
        await until_async(election.leads)
        assert lease_of(api)["leaseTransitions"] == 0
        hold(api, "b", leaseDurationSeconds=15)
        await until_async(lambda: not election.leads(), 2)
    assert lease_of(api)["holderIdentity"] == "b"


@pytest.mark.usefixtures("quick")
async def test_log_says_once_that_a_process_waits_and_once_that_it_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api()
    everything = structlog.make_filtering_bound_logger(0)  # the loggers of the tests drop messages
    monkeypatch.setattr(elections, "_log", structlog.wrap_logger(None, wrapper_class=everything))
    hold(api, "b", leaseDurationSeconds=15)
    with structlog.testing.capture_logs() as lines:
        async with campaigning(api, "a") as election:
            await asyncio.sleep(0.3)
            hold(api, "")
            await until_async(election.leads)
            await asyncio.sleep(0.3)
    assert [line["event"] for line in lines] == ["waiting for the lease", "leading"]
