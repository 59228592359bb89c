"""``reballast observe`` as a user runs it: beside a control plane that it only reads."""

import asyncio
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import recordings
from tests.observer.commands import KUBECONFIG, outputs, run
from tests.observer.playback import Playback, playing

pytestmark = pytest.mark.slow

FIRST = 2_000
COUNT = 5_000


async def counted(directory: Path) -> int:
    """The number of compared decisions in the log."""
    return int(json.loads(await run(directory, "shadow", "report", "--json"))["decisions"])


async def metric(directory: Path, name: str) -> float:
    """A metric of the server."""
    endpoint = json.loads(await asyncio.to_thread((directory / "endpoint.json").read_text))
    headers = {"authorization": f"Bearer {endpoint['token']}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        text = (await client.get(f"{endpoint['url']}/metrics")).text
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))


async def first_live_event(directory: Path) -> str:
    """The first observed object in the live feed from the beginning of the log."""
    endpoint = json.loads(await asyncio.to_thread((directory / "endpoint.json").read_text))
    headers = {"authorization": f"Bearer {endpoint['token']}"}
    async with (
        httpx.AsyncClient(headers=headers, trust_env=False) as client,
        client.stream("GET", f"{endpoint['url']}/api/v1/live?after=0") as live,
    ):
        return await anext(
            line
            async for line in live.aiter_lines()
            if line.startswith("data:") and "object-observed" in line
        )


async def newest_decision(directory: Path) -> dict[str, Any]:
    """The newest compared decision that placed replicas of a namespaced template."""
    text = await run(
        directory, "log", "tail", "--topic", "observations", "--no-follow", "-n", "100000", "--json"
    )
    decisions = [json.loads(line)["data"] for line in text.splitlines() if "decision-compared" in line]
    return [data for data in decisions if data.get("namespace") and data["observed"]["clusters"]][-1]


async def observed(directory: Path) -> int:
    """The number of bindings in the log."""
    scratch = directory.with_name("export")
    await run(directory, "log", "export", str(scratch), "--topic", "observations")
    files = await asyncio.to_thread(lambda: [path.read_text() for path in scratch.glob("records-*")])
    keys = {json.loads(line)["key"] for text in files for line in text.splitlines()}
    return sum(key.startswith("resourcebinding:") for key in keys)


async def check_reads(directory: Path, playback: Playback) -> None:
    """Check the timeline of a workload, now and at its first record, and the metrics."""
    name = next(change for change in playback.objects("ResourceBinding")).head.metadata
    template, _, kind = name.name.rpartition("-")
    timeline = await run(directory, "timeline", kind, template, "-n", name.namespace)
    assert "object-observed" in timeline
    assert f"{kind}: ".lower() in timeline.lower()
    assert "Event " in timeline
    for words, code in (
        (("get", "ns"), 0),
        (("describe", "ns", "default"), 0),
        (("get", kind, template, "-n", name.namespace), 1),
        (("describe", kind, template, "-n", name.namespace), 1),
    ):
        _, warning = await outputs(directory, *words, code=code)
        assert "observes karmada, whose objects are not listed" in warning, words
    number = timeline.splitlines()[1].split()[0]
    words = ("timeline", kind, template, "-n", name.namespace)
    assert len((await run(directory, *words, "--as-of", number)).splitlines()) == 2
    assert await metric(directory, 'reballast_observer_decisions_total{verdict="same"}') > 0
    assert await metric(directory, "reballast_observer_changes_total") >= FIRST
    assert '"source":"/observed/karmada"' in await first_live_event(directory)


async def test_existing_control_plane_is_observed(tmp_path: Path) -> None:
    playback = Playback(itertools.islice(recordings.changes(recordings.of_scenario("burst")), COUNT))
    playback.shown = FIRST
    directory, kubeconfig = tmp_path / "data", tmp_path / "karmada.config"
    async with playing(playback) as access:
        await asyncio.to_thread(kubeconfig.write_text, KUBECONFIG % access.server)
        command = [sys.executable, "-m", "engine.cli", "observe", "--kubeconfig", str(kubeconfig)]
        process = await asyncio.create_subprocess_exec(
            *command, "--data", str(directory), "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(60):
                await process.stdout.readuntil(b"{")
                while await observed(directory) < len(playback.objects("ResourceBinding")):
                    pass
            playback.shown = COUNT
            async with asyncio.timeout(60):
                while not await counted(directory):
                    pass
            shown = await run(directory, "log", "tail", "--topic", "observations", "--no-follow")
            assert "object-observed" in shown
            await check_reads(directory, playback)
            await run(directory, "log", "verify", "--views")
            compared = await newest_decision(directory)
            template, _, kind = compared["name"].rpartition("-")
            words = ("shadow", "explain", kind, template, "-n", compared["namespace"])
            text = await run(directory, *words)
            assert f"resourceVersion {compared['version']}" in text
            assert "CLUSTER" in text
            explained = json.loads(await run(directory, *words, "--json"))
            assert explained["compared"]["observed"] == compared["observed"]
            assert explained["explanation"]["groups"]
            assert await run(directory, "explain", *words[2:]) == text
            await run(directory, "shadow", "explain", "deploy", "nobody", code=1)
            # The observer has no objects of its own: a plan is about the control plane that it observes.
            cluster = next(iter(compared["observed"]["clusters"]))
            plan = json.loads(await run(directory, "plan", "fail", cluster, "--json", code=None))
            assert plan["prediction"]["workloads"] > 0
            moved = any(cluster in workload["before"] for workload in plan["prediction"]["changed"])
            assert moved or not recordings.ARE_OWN
        finally:
            process.terminate()
            await process.wait()
    await run(directory, "observe", "--kubeconfig", str(kubeconfig), "--control-plane", "other", code=1)
    report = await run(directory, "shadow", "report")
    assert "same" in report
    assert playback.refused == 0


async def test_kubeconfig_without_access_is_refused(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "karmada.config"
    await asyncio.to_thread(kubeconfig.write_text, "{}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "engine.cli", "observe", "--kubeconfig", str(kubeconfig), stderr=subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"use a kubeconfig that can read" in errors
