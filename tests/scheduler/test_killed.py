"""The command is killed repeatedly, or frozen: nothing is lost, and nothing is written twice."""

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.bench.karmada_api import binding, divided
from engine.log import local
from tests.observer.commands import KUBECONFIG, run
from tests.rounds import ROUNDS
from tests.scheduler.api import Api, serving
from tests.scheduler.scheduling import karmada, scheduled, scheduling, writes
from tests.waiting import until_async

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KILLS = 8 * ROUNDS


@asynccontextmanager
async def running(kubeconfig: Path, directory: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The command, killed at the end."""
    words = ["scheduler", "--kubeconfig", str(kubeconfig), "--data", str(directory)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "engine.cli", *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        await process.stdout.readuntil(b"Ready")
        yield process
    finally:
        process.kill()
        await process.wait()


def unscheduled(api: Api) -> list[str]:
    names = [binding["spec"]["resource"]["name"] for binding in api.of_kind("resourcebindings")]
    return [name for name in names if scheduled(api, name) != "Success"]


async def test_killed_scheduler_loses_nothing_and_writes_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311  # an example, not a secret
    api, directory, kubeconfig = karmada(), tmp_path / "data", tmp_path / "karmada.config"
    async with serving(api) as access:
        await asyncio.to_thread(kubeconfig.write_text, KUBECONFIG % access.server)
        for number in range(KILLS):
            async with running(kubeconfig, directory):
                for index in range(5):
                    name = f"web{number}-{index}"
                    api.put("resourcebindings", binding(name, 4, divided("member1", "member2")))
                    await asyncio.sleep(chance.random() / 40)
                if number == 0:
                    await until_async(lambda: not unscheduled(api))
        async with running(kubeconfig, directory):
            await until_async(lambda: not unscheduled(api))
            await run(directory, "log", "verify", "--views")
            text = await run(
                directory, "log", "tail", "--topic", "observations", "--no-follow", "-n", "9999", "--json"
            )
    assert set(writes(api).values()) == {2}
    records = [json.loads(line) for line in text.splitlines()]
    observed = [record["data"]["name"] for record in records if "object-observed" in record["type"]]
    assert {binding["metadata"]["name"] for binding in api.of_kind("resourcebindings")} <= set(observed)
    made = [record["data"]["name"] for record in records if "decision-made" in record["type"]]
    assert len(made) >= len(set(made)) == 5 * KILLS


async def test_frozen_scheduler_is_replaced_and_writes_nothing_when_it_continues(tmp_path: Path) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    placement = divided("member1", "member2")
    async with serving(api) as access:
        await asyncio.to_thread(kubeconfig.write_text, KUBECONFIG % access.server)
        async with running(kubeconfig, tmp_path / "data") as frozen:
            api.put("resourcebindings", binding("first", 4, placement))
            await until_async(lambda: not unscheduled(api))
            api.put("resourcebindings", binding("second", 4, placement))
            frozen.send_signal(signal.SIGSTOP)
            try:
                async with scheduling(access, local.MemoryLog(), "b"):
                    await until_async(lambda: not unscheduled(api), 40)
                    api.put("resourcebindings", binding("third", 4, placement))
                    frozen.send_signal(signal.SIGCONT)
                    await until_async(lambda: not unscheduled(api))
                    await asyncio.sleep(3)
                    (lease,) = api.of_kind("leases")
                    assert lease["spec"]["holderIdentity"] == "b"
            finally:
                frozen.send_signal(signal.SIGCONT)
    assert writes(api) == {f"{name}-deployment": 2 for name in ("first", "second", "third")}
