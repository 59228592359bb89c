"""The agent's work queue, its backoff, and the gate in front of a throttled API."""

import time

import anyio
import anyio.lowlevel
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.agent.api_errors import ThrottledError, UnreachableError
from engine.agent.call_limits import CALLS_MAX, Backoff, Gate
from engine.agent.key_queue import KeyQueue
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.bench import karmada_api
from tests.speed import slowness

pytestmark = pytest.mark.virtual_time


async def test_key_is_queued_once_and_again_after_a_change() -> None:
    waiting = KeyQueue[str]()
    for key in ("a", "b", "a"):
        waiting.put(key)
    assert [await waiting.take(), await waiting.take()] == ["a", "b"]
    waiting.put("a")
    with anyio.move_on_after(0.01) as scope:
        await waiting.take()
    assert scope.cancelled_caught
    waiting.done("a")
    assert await waiting.take() == "a"


async def test_earliest_of_several_delays_wins() -> None:
    waiting = KeyQueue[str]()
    waiting.put_later("a", 3_600)
    waiting.put_later("b", 0.02)
    waiting.put_later("a", 0.01)
    waiting.put_later("a", 7_200)
    assert [await waiting.take(), await waiting.take()] == ["a", "b"]


async def test_every_worker_takes_a_key() -> None:
    waiting, taken = KeyQueue[str](), list[str]()

    async def work() -> None:
        taken.append(await waiting.take())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        for key in ("a", "b", "c"):
            waiting.put(key)
    assert sorted(taken) == ["a", "b", "c"]


async def test_each_of_many_keys_is_taken_in_constant_time() -> None:
    waiting = KeyQueue[int]()
    for key in range(100_000):
        waiting.put(key)
    began_s = time.process_time()
    assert [await waiting.take() for _ in range(100_000)] == list(range(100_000))
    used_s = time.process_time() - began_s
    assert used_s < 2 * slowness()


def test_backoff_doubles_up_to_a_limit_with_jitter() -> None:
    backoff = Backoff(1.0, 4.0)
    waits = [backoff.next_delay_s() for _ in range(4)]
    assert all(least / 2 <= wait <= least for wait, least in zip(waits, (1, 2, 4, 4), strict=True))
    backoff.reset()
    assert backoff.next_delay_s() <= 1.0


def test_backoff_begins_again_after_work_that_lasted_longer_than_its_limit() -> None:
    backoff = Backoff(1.0, 4.0)
    assert [backoff.next_delay_s(worked_s) <= 1.0 for worked_s in (0.0, 4.1, 4.1)] == [True] * 3
    assert [backoff.next_delay_s(4.0) >= least / 2 for least in (2, 4)] == [True] * 2


async def test_throttled_api_is_paused_for_its_retry_time() -> None:
    call_times_s: list[float] = []
    gate = Gate(lambda: None)

    async def ask() -> None:
        call_times_s.append(anyio.current_time())
        if len(call_times_s) == 1:
            raise ThrottledError("busy", 0.3)

    with pytest.raises(ThrottledError):
        await gate.call(ask)
    await gate.call(ask)
    assert call_times_s[1] - call_times_s[0] >= 0.3
    assert gate.is_reachable


async def test_server_with_room_for_one_call_refuses_few() -> None:
    gate, refused, serving = Gate(lambda: None), 0, False

    async def ask() -> None:
        nonlocal refused, serving
        if serving:
            refused += 1
            raise ThrottledError("busy", 1)
        serving = True
        await anyio.sleep(0.01)
        serving = False

    async def call() -> None:
        while True:
            try:
                return await gate.call(ask)
            except ThrottledError:
                continue

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(call)
    assert refused < 60


async def test_api_that_refuses_no_more_gets_many_calls_again() -> None:
    gate, made, most = Gate(lambda: None), 0, 0

    async def refuse() -> None:
        raise ThrottledError("busy", 1)

    async def ask() -> None:
        nonlocal made, most
        made += 1
        most = max(most, made)
        await anyio.sleep(0.01)
        made -= 1

    for _ in range(6):
        with pytest.raises(ThrottledError):
            await gate.call(refuse)
    async with anyio.create_task_group() as tasks:
        for _ in range(1_000):
            tasks.start_soon(gate.call, ask)
    assert most == CALLS_MAX


@pytest.mark.parametrize(("header", "wait_s"), [("7", 7), ("86400", 60), ("9" * 400, 60), ("soon", 0)])
async def test_server_cannot_demand_a_wait_of_any_length(header: str, wait_s: float) -> None:
    async def throttle(_request: Request) -> Response:
        return Response("{}", 429, headers={"retry-after": header})

    async with karmada_api.serving([Route("/version", throttle)]) as url:
        api = MemberApi(Access(server=url))
        with pytest.raises(ThrottledError) as caught:
            await api.version()
        await api.aclose()
    assert caught.value.after_s == wait_s


async def test_gate_reports_each_change_of_reachability_once() -> None:
    heard: list[bool] = []
    gate = Gate(lambda: heard.append(gate.is_reachable))
    fails = True

    async def ask() -> None:
        if fails:
            raise UnreachableError("nobody")

    for _ in range(2):
        with pytest.raises(UnreachableError):
            await gate.call(ask)
    fails = False
    await gate.call(ask)
    assert heard == [False, True]


async def test_calls_that_fail_together_grow_the_delay_once() -> None:
    gate, called = Gate(lambda: None), list[int]()

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise UnreachableError("down")

    async def call() -> None:
        with pytest.raises(UnreachableError):
            await gate.call(fail)

    async def succeed() -> None:
        called.append(1)

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(call)
    with anyio.fail_after(0.9):
        await gate.call(succeed)
    assert called
