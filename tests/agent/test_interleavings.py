"""Works, changes and responses that overtake each other."""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import engine.agent.member
from engine.agent import messages
from engine.agent.agent_metrics import ClusterCounters
from engine.agent.call_limits import Backoff
from engine.agent.checkpoint import Checkpoint
from engine.agent.gateway_client import GatewayClient
from engine.agent.ledger import Ledger
from engine.agent.member_api import MemberApi
from engine.agent.reconciliation import Entry
from engine.agent.reports import Reporter
from engine.bench import karmada_api
from tests.agent.in_process import NAME, Gateway, Member, apply, key_of, nothing, running
from tests.background import background
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

_SOON_S = 0.2
"""Long enough for what was sent meanwhile to arrive first."""


async def test_workload_that_returns_during_its_removal_is_observed(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()

    async def again(method: str, name: str) -> None:
        if method == "DELETE":
            gateway.send(name, 3, 2)
            await asyncio.sleep(_SOON_S)

    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        member.before_answer = again
        gateway.send("web", 2, None)
        await until_async(lambda: ("DELETE", "web") in member.writes and "web" in member.objects)
        await until_async(lambda: gateway.reports[key_of("web")].step == 3)
        member.run_all("web")
        await until_async(lambda: gateway.reports[key_of("web")].ready == 2)
    assert not gateway.gone


async def test_change_that_overtakes_the_response_of_an_apply_is_reported(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()

    async def run(_method: str, name: str) -> None:
        member.run_all(name)
        await asyncio.sleep(_SOON_S)

    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        await asyncio.sleep(_SOON_S)
        member.before_answer = run
        gateway.send("web", 2, 3)
        gateway.send("api", 1, 1)
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
        await until_async(lambda: key_of("api") in gateway.reports)
        await until_async(lambda: gateway.reports[key_of("web")].ready == 3)
        await until_async(lambda: gateway.reports[key_of("api")].ready == 1)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("change", ["deleted", "taken over"])
async def test_change_by_another_client_that_overtakes_the_response_of_an_apply_is_corrected(
    change: str, is_first: bool, tmp_path: Path
) -> None:
    gateway, member = Gateway(), Member()

    async def interfere(_method: str, name: str) -> None:
        member.before_answer = nothing
        if change == "deleted":
            member.delete(name)
        else:
            member.take_over(name, 9)
        await asyncio.sleep(_SOON_S)

    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("api", 1, 1)
        await until_async(lambda: key_of("api") in gateway.reports)
        if not is_first:
            gateway.send("web", 1, 1)
            await until_async(lambda: key_of("web") in gateway.reports)
        await asyncio.sleep(_SOON_S)
        member.before_answer = interfere
        gateway.send("web", 2, 2)
        await until_async(lambda: member.before_answer is nothing)
        await until_async(lambda: "web" in member.objects and member.objects["web"]["spec"]["replicas"] == 2)


async def test_work_that_the_control_plane_has_replaced_meanwhile_has_no_fault(tmp_path: Path) -> None:
    class Replacing(Gateway):
        outdated = 0

        async def _manifest(self, request: Request) -> Response:
            if request.query_params["step"] == "1":
                self.outdated += 1
                return karmada_api.status(404, "NotFound")
            return await super()._manifest(request)

    gateway, member = Replacing(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: gateway.outdated > 1)
        assert not gateway.reports
        gateway.send("web", 2, 3)
        await until_async(lambda: gateway.reports)
        assert gateway.reports[key_of("web")].fault == ""
    assert member.objects["web"]["spec"] == {"replicas": 3}


async def test_namespaces_are_compared_again_after_a_failure(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.change_namespaces(1)
        await until_async(lambda: gateway.namespaces_read == [500, 200])


async def test_agent_continues_if_the_feed_of_calls_fails(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    gateway.call_faults = [503, 403]
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.calls_read == [503, 403, 200])
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)


@pytest.mark.slow
async def test_delays_of_a_feed_that_was_up_for_long_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, member = Gateway(), Member()
    gateway.feed_breaks = [0.0] * 4 + [0.9] * 3

    def short(_first_s: float = 0, _last_s: float = 0) -> Backoff:
        return Backoff(0.1, 0.8)

    monkeypatch.setattr(engine.agent.member, "Backoff", short)
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    delays = [began_s - ended_s for (_, ended_s), (began_s, _) in itertools.pairwise(gateway.feed_times)]
    assert delays[3] >= 0.4
    assert max(delays[4:]) < 0.4


async def test_object_is_removed_although_discovery_omits_its_kind(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.is_stale = True
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 2, None)
        await until_async(lambda: gateway.gone)
    assert not member.objects


async def test_every_removal_of_many_is_reported_at_once(tmp_path: Path) -> None:
    """Reports about the cluster come first in a request; removals that do not fit follow in the next request."""
    gateway, kept = Gateway(), await asyncio.to_thread(Checkpoint, tmp_path / "agent.sqlite")
    ledger = Ledger(kept, NAME)
    async with karmada_api.serving(gateway.routes()) as url:
        control = GatewayClient(url, "t", NAME)
        reporter = Reporter(control, ledger, lambda _cluster: None, ClusterCounters())
        for number in range(messages.REPORTS_MAX):
            work = messages.Work(key=f"k{number}", state="removed", term=1, step=1)
            ledger.put(work.key, Entry(work=work))
            reporter.binding_changed(work.key)
        reporter.report(messages.HealthReport(ready=True, grace_seconds=40))
        async with background(reporter.run()):
            await until_async(lambda: len(gateway.gone) == messages.REPORTS_MAX)
        await control.aclose()
    await asyncio.to_thread(kept.close)


async def test_response_with_a_strange_content_type_is_passed_on() -> None:
    received: list[str] = []

    async def reply(request: Request) -> Response:
        received.append(request.headers["content-type"])
        return Response()

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"body"

    async with karmada_api.serving([Route(f"/api/v1/agents/{NAME}/replies", reply, methods=["POST"])]) as url:
        control = GatewayClient(url, "t", NAME)
        # Bytes that are not UTF-8 come from aiohttp as surrogates.
        for content_type in ("text/\u00fc", b"text/\xfc".decode("utf-8", "surrogateescape")):
            await control.reply("1", 200, content_type, chunks())
        await control.aclose()
    assert received == ["text/\u00c3\u00bc", "text/\u00fc"]


async def test_agent_whose_checkpoint_fails_closes_its_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, member = Gateway(), Member()
    closed: list[str] = []

    def fail(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    class Api(MemberApi):
        async def aclose(self) -> None:
            await super().aclose()
            closed.append("member")

    class Closing(GatewayClient):
        async def aclose(self) -> None:
            await super().aclose()
            closed.append("control")

    monkeypatch.setattr(engine.agent.member, "MemberApi", Api)
    monkeypatch.setattr(engine.agent.member, "GatewayClient", Closing)

    async def serve() -> None:
        async with running(gateway, member, tmp_path / "agent.sqlite"):
            gateway.send("web", 1, 2)
            await until_async(lambda: key_of("web") in gateway.reports)
            monkeypatch.setattr(Checkpoint, "save", fail)
            gateway.send("web", 2, 3)
            await until_async(lambda: sorted(closed) == ["control", "member"])

    with pytest.raises(AssertionError, match="disk is full"):
        await serve()


async def test_objects_are_applied_and_reported_again_after_a_restore_of_the_member(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        await asyncio.sleep(_SOON_S)
        restore = member.backup()
        gateway.send("web", 2, 5)
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
        for _ in range(5):
            member.run_all("web")
        await until_async(lambda: gateway.reports[key_of("web")].ready == 5)
        restore()
        await until_async(lambda: member.objects["web"]["spec"]["replicas"] == 5)
        await until_async(lambda: gateway.reports[key_of("web")].ready == 0)
        member.run_all("web")
        await until_async(lambda: gateway.reports[key_of("web")].ready == 5)
