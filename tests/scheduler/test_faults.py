"""The scheduler under each fault of its API, 20 rounds side by side: each decision is written once, nothing else."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from engine.bench.karmada_api import binding, divided
from engine.log import local
from tests.observer.disturbing import FAULTS, Disturbing, disturb, in_rounds
from tests.relay import Relay, relayed
from tests.scheduler.scheduling import decided, karmada, placed, scheduled, scheduling, writes
from tests.waiting import until_async

pytestmark = pytest.mark.slow

BURSTS: Final = 4
BURST: Final = 3
WAIT_S: Final = 60
WRITABLE: Final = {"resourcebindings", "leases", "events"}


class Round:
    """A control plane whose API has faults, and the bindings of our scheduler in it."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.karmada = karmada()
        self.api = Disturbing(self.karmada.routes(), seed, directory)
        self.names: list[str] = []

    def burst(self) -> None:
        """Create bindings of our scheduler, and one of another scheduler."""
        for _ in range(BURST):
            self.names.append(f"web{len(self.names)}")
            own_binding = binding(self.names[-1], 4, divided("member1", "member2"))
            self.karmada.put("resourcebindings", own_binding)
        other = binding(f"other{len(self.names)}", 4, divided("member1"), "default-scheduler")
        self.karmada.put("resourcebindings", other)

    async def written(self) -> None:
        """Return when all decisions are written."""
        await until_async(
            lambda: all(scheduled(self.karmada, name) == "Success" for name in self.names), WAIT_S
        )

    def check(self, message: str) -> None:
        """Check that each binding was written twice, clusters and status, and that nothing else was written."""
        assert writes(self.karmada) == {f"{name}-deployment": 2 for name in self.names}, message
        expected = {"member1": 2, "member2": 2}
        assert all(placed(self.karmada, name) == expected for name in self.names), message
        assert {plural for plural, *_ in self.karmada.writes} <= WRITABLE, message


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_decision_is_written_once(fault: str, tmp_path: Path) -> None:
    await in_rounds(lambda seed: written_once(fault, seed, tmp_path))


async def written_once(fault: str, seed: int, directory: Path) -> None:
    current_round, log = Round(seed, directory), local.MemoryLog()
    async with (
        current_round.api.serving() as relay,
        scheduling(current_round.api.access(relay), log, clock_ms=lambda: current_round.api.clock_ms),
    ):
        current_round.burst()
        await current_round.written()
        await disturb(fault, current_round.api, relay, (current_round.burst() for _ in range(BURSTS)))
        await current_round.written()
    current_round.check(f"{fault} in round {seed}")
    made = sorted(decision.name for decision in await decided(log))
    assert made == sorted(f"{name}-deployment" for name in current_round.names), f"{fault} in round {seed}"


async def test_one_of_two_schedulers_writes_while_leaders_stop_or_are_cut_off(tmp_path: Path) -> None:
    await in_rounds(lambda seed: one_writes(seed, tmp_path))


async def one_writes(seed: int, directory: Path) -> None:
    """The leader gives the Lease up, or in odd rounds is cut off until the other one leads."""
    current_round = Round(seed, directory)
    async with (
        current_round.api.serving() as relay,
        relayed(relay.url) as other,
        AsyncExitStack() as leading,
    ):
        await leading.enter_async_context(scheduling(current_round.api.access(other), local.MemoryLog(), "a"))
        current_round.burst()
        await current_round.written()
        async with scheduling(current_round.api.access(relay), local.MemoryLog(), "b"):
            current_round.burst()
            await current_round.api.pause()
            if seed % 2:
                await _cut_off(current_round, other)
            else:
                await leading.aclose()
            current_round.burst()
            await current_round.written()
            # Time for writes that the previous leader had left: there must be none.
            await asyncio.sleep(0.5)
            (lease,) = current_round.karmada.of_kind("leases")
            assert lease["spec"]["holderIdentity"] == "b", f"round {seed}"
    current_round.check(f"round {seed}")


async def _cut_off(current_round: Round, relay: Relay) -> None:
    """Cut the leader off until another one has written."""
    relay.passing.clear()
    current_round.burst()
    await current_round.written()
    relay.passing.set()
