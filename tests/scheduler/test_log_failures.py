"""An observer and its scheduler in a server, whose log does not accept appends for a while."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.bench.karmada_api import binding, divided
from engine.log import local, port
from engine.process.observer_service import Observed, Scheduling
from engine.process.replica import clock_ms
from events.records import Record, StoredRecord
from tests.scheduler.api import serving
from tests.scheduler.scheduling import NAME, decided, karmada, placed, scheduled, writes
from tests.waiting import until_async


class Failing(local.MemoryLog):
    """A log whose next appends fail; with ``lands`` they are carried out nevertheless."""

    def __init__(self, error: type[port.LogError], *, lands: bool) -> None:
        super().__init__()
        self.failures = 0
        self._error = error
        self._lands = lands

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        if self.failures:
            self.failures -= 1
            if self._lands:
                await super().append(batch)
            raise self._error("no broker answers")
        return await super().append(batch)


@pytest.mark.slow
@pytest.mark.parametrize("lands", [True, False])
async def test_observer_and_scheduler_continue_after_failed_appends(lands: bool) -> None:
    api, log, stopping = karmada(), Failing(port.OutcomeUnknownError, lands=lands), asyncio.Event()
    async with serving(api) as access:
        observed = Observed("test", access, Scheduling(NAME, "karmada-system"))
        observing = observed.observer(log, clock_ms, None)
        report = observing.report
        running = asyncio.create_task(observing.run(stopping))
        names = ["web0"]
        api.put("resourcebindings", binding("web0", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web0") == "Success")
        for number in (1, 2):
            log.failures = number
            names.append(f"web{number}")
            api.put("resourcebindings", binding(names[-1], 4, divided("member1", "member2")))
            await until_async(lambda: scheduled(api, names[-1]) == "Success" or running.done())
            assert not running.done()
        assert observing.report is report
        stopping.set()
        await running
    assert all(placed(api, name) == {"member1": 2, "member2": 2} for name in names)
    assert writes(api) == {f"{name}-deployment": 2 for name in names}
    assert {decision.name for decision in await decided(log)} == {f"{name}-deployment" for name in names}


async def test_damaged_log_ends_the_observer() -> None:
    log = Failing(port.LogCorruptedError, lands=False)
    log.failures = 1
    async with serving(karmada()) as access:
        observing = Observed("test", access).observer(log, clock_ms, None)
        with pytest.RaisesGroup(port.LogCorruptedError, flatten_subgroups=True):
            await observing.run(asyncio.Event())
