"""Observer, scheduler and import beside a real Karmada, while its users edit."""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli import servers
from tests.clusters.__main__ import KARMADA
from tests.karmada.stories import Story
from tests.observer.commands import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        KARMADA not in os.environ,
        reason=f"no real Karmada: {KARMADA} names no kubeconfig, so NOTHING is shown",
    ),
]

READY_S: Final = 60
SETTLED_S: Final = 120
MOVES: Final = 100
KILLS: Final = 3
OURS: Final = "reballast"


@pytest.fixture
def kubeconfig() -> Path:
    return Path(os.environ[KARMADA])


async def test_observer_decides_as_karmada_does(kubeconfig: Path, tmp_path: Path) -> None:
    story = Story(kubeconfig, 1, "observed")
    async with started("observe", kubeconfig, tmp_path / "data"):
        await asyncio.to_thread(story.play, MOVES)
        report = await settled(tmp_path / "data")
    verdicts = report["verdicts"]
    assert verdicts["same"] > MOVES
    assert verdicts["unexplained"] == 0, report
    assert verdicts["race"] <= verdicts["same"] // 20, report


async def test_scheduler_that_is_killed_decides_every_binding_of_its_own(
    kubeconfig: Path, tmp_path: Path
) -> None:
    story, others = Story(kubeconfig, 2, "ours", OURS), Story(kubeconfig, 3, "theirs")
    playing = asyncio.gather(*(asyncio.to_thread(player.play, MOVES) for player in (story, others)))
    for _ in range(KILLS):
        async with started("scheduler", kubeconfig, tmp_path / "data") as process:
            await asyncio.sleep(MOVES * 0.4 / KILLS)
            process.kill()
    async with started("scheduler", kubeconfig, tmp_path / "data"):
        await playing
        bindings = await decided(story)
        report = await settled(tmp_path / "data")
    assert {binding["spec"]["schedulerName"] for binding in bindings} == {OURS}
    assert any(binding["spec"].get("clusters") for binding in bindings)
    assert {binding["spec"]["schedulerName"] for binding in others.bindings()} == {"default-scheduler"}
    assert report["verdicts"]["unexplained"] == 0, report
    assert "no findings" in await run(tmp_path / "data", "log", "verify")


async def test_import_moves_nothing(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(kubeconfig, 4, "moved")
    await asyncio.to_thread(story.play, MOVES // 2)
    before = await decided(story)
    with servers.running(tmp_path / "data", "--no-members"):
        shell = servers.Shell(tmp_path / "data", capsys)
        output = await asyncio.to_thread(shell, "import", "--kubeconfig", str(kubeconfig))
        moved = Story(tmp_path / "data/kubeconfig", 4, "moved")
        moved.names.extend(story.names)
        after = await asyncio.to_thread(moved.bindings)
    assert "are placed as before" in output
    assert placed(after) == placed(before)


@asynccontextmanager
async def started(command: str, kubeconfig: Path, data: Path) -> AsyncGenerator[Process]:
    """Run a command until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engine.cli", command, "--kubeconfig", str(kubeconfig), "--data", str(data)),
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(READY_S):
            await process.stdout.readuntil(b"Ready")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def decided(story: Story) -> list[dict[str, Any]]:
    """The bindings of a story, once all of them are decided."""
    async with asyncio.timeout(SETTLED_S):
        while True:
            bindings = await asyncio.to_thread(story.bindings)
            if all(map(is_decided, bindings)):
                return bindings
            await asyncio.sleep(1)


async def settled(data: Path) -> dict[str, Any]:
    """The report on all decisions, once no more are compared."""
    count = -1
    async with asyncio.timeout(SETTLED_S):
        while True:
            report: dict[str, Any] = json.loads(await run(data, "shadow", "report", "--json", code=None))
            if report["decisions"] == count:
                return report
            count = report["decisions"]
            await asyncio.sleep(5)


def is_decided(binding: dict[str, Any]) -> bool:
    """Whether the newest generation of a binding is scheduled, or could not be scheduled."""
    status = binding.get("status", {})
    scheduled = [condition for condition in status.get("conditions", ()) if condition["type"] == "Scheduled"]
    if not scheduled:
        return False
    is_level = status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
    return is_level or scheduled[0]["status"] == "False"


def placed(bindings: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Replicas by cluster of each binding."""
    return {
        binding["metadata"]["name"]: {
            target["name"]: target.get("replicas", 0) for target in binding["spec"].get("clusters", ())
        }
        for binding in bindings
    }
