"""The command is killed repeatedly while an API changes: nothing is lost, and nothing is in the log twice."""

import asyncio
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests import recordings
from tests.observer.commands import KUBECONFIG, run
from tests.observer.observing import shown
from tests.observer.playback import Playback, playing
from tests.rounds import ROUNDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Place = tuple[str, str, str]

KILLS: Final = 6 * ROUNDS
SIDE_BY_SIDE: Final = 2
FIRST: Final = 150
COUNT: Final = 600
READY_S: Final = 60


async def test_killed_observer_loses_and_repeats_nothing(tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as rounds:
        for seed in range(SIDE_BY_SIDE):
            rounds.create_task(killed(seed, tmp_path))


async def killed(seed: int, directory: Path) -> None:
    """Kill one observer repeatedly, at any moment from its start on."""
    chance = random.Random(seed)  # noqa: S311  # an example, not a secret
    playback = Playback(itertools.islice(recordings.changes(recordings.of_scenario("burst")), COUNT))
    playback.shown = FIRST
    data, kubeconfig = directory / f"data-{seed}", directory / f"karmada-{seed}.config"
    changes: list[tuple[Place, int, bool]] = []
    async with playing(playback) as access:
        kubeconfig.write_text(KUBECONFIG % access.server)
        for number in range(KILLS + 1):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "engine.cli", "observe", "--kubeconfig", str(kubeconfig)),
                *("--data", str(data)),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            try:
                assert process.stdout is not None
                if number % 3 == 1 and number < KILLS:
                    # Killed while it starts.
                    await asyncio.sleep(chance.random())
                else:
                    async with asyncio.timeout(READY_S):
                        await process.stdout.readuntil(b"Ready")
                if number in {0, KILLS}:
                    changes = await level(playback, data)
                for _ in range(3 if number < KILLS else 0):
                    playback.shown = min(playback.shown + chance.randrange(30), COUNT)
                    await asyncio.sleep(chance.random() / 10)
            finally:
                process.kill()
                await process.wait()
    message = f"round {seed}"
    assert playback.shown > 2 * FIRST, message
    assert playback.refused == 0, f"{message}: the API was written to"
    assert max(Counter(changes).values()) == 1, message
    kinds = {change.head.kind for change in playback.changes[:FIRST]}
    later = {
        (change.object_key, change.version, change.is_gone)
        for change in playback.changes[FIRST : playback.shown]
        if change.head.kind in kinds
    }
    assert later <= set(changes), message


async def level(playback: Playback, data: Path) -> list[tuple[Place, int, bool]]:
    """Wait until the log of a running observer has what the API shows; verify it, and return its observations."""
    changes: list[tuple[Place, int, bool]] = []
    async with asyncio.timeout(READY_S):
        while newest(changes) != shown(playback):
            changes = await observed(data)
    await run(data, "log", "verify", "--views")
    return changes


def newest(changes: list[tuple[Place, int, bool]]) -> dict[Place, int]:
    """The newest version of each existing object."""
    newest_versions: dict[Place, int] = {}
    for identity, version, is_gone in changes:
        if is_gone:
            newest_versions.pop(identity, None)
        else:
            newest_versions[identity] = version
    return newest_versions


async def observed(data: Path) -> list[tuple[Place, int, bool]]:
    """Places, versions and deletions of the observations in the order of the log."""
    words = ["log", "tail", "--topic", "observations", "--no-follow", "-n", "9999", "--json"]
    records = [json.loads(line) for line in (await run(data, *words)).splitlines()]
    return [
        (
            (seen["kind"], seen.get("namespace", ""), seen["name"]),
            seen["version"],
            "vanished" in record["type"],
        )
        for record in records
        if "object-" in record["type"] and (seen := record["data"])
    ]
