"""Health checks and metrics of a worker over HTTP."""

import asyncio
from collections.abc import Sequence

import httpx
import pytest

from engine.http.query import health
from engine.log import local, port
from engine.reconcilers import worker, worker_metrics
from events import topics
from events.client import statements
from events.records import Record, StoredRecord
from tests.background import background
from tests.builders.inputs import joined

pytestmark = pytest.mark.virtual_time


class Failing(local.MemoryLog):
    """A log in memory whose appends fail while ``fails`` is set."""

    fails = False

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        if self.fails:
            raise port.LogError("the disk is full")
        return await super().append(batch)


def watched(of: worker.Worker, log: port.Log) -> httpx.AsyncClient:
    app = health.monitoring_app(of.is_steady, [worker_metrics.WorkerMetrics(of, log)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


async def until(http: httpx.AsyncClient, path: str, line: str) -> None:
    """Poll until the answer has this line."""
    async with asyncio.timeout(5):
        while line not in (await http.get(path)).text.splitlines():  # noqa: ASYNC110  # it can only be asked
            await asyncio.sleep(0.01)


async def test_worker_is_ready_while_it_owns_its_shards_and_turns_succeed() -> None:
    log = Failing()
    of = worker.Worker(log, lambda: 0)
    async with watched(of, log) as http:
        assert (await http.get("/healthz")).text == "ok"
        assert (await http.get("/readyz")).status_code == 503
        log.fails = True
        async with background(of.run()):
            await until(http, "/metrics", "reballast_worker_failed_turns_total 2.0")
            assert (await http.get("/readyz")).status_code == 503

            log.fails = False
            await until(http, "/readyz", "ok")
            of.assign([1, 2])
            assert (await http.get("/readyz")).status_code == 503
            # The worker takes over its new shards in its next turn, which this record starts.
            statement = statements.Statement(data=joined("member1"), at_ms=1)
            await log.append([statements.record_of(statement, "/tests", 1, "")])
            await until(http, "/readyz", "ok")


async def test_worker_metrics_are_prometheus_text() -> None:
    log = Failing()
    of = worker.Worker(log, lambda: 0)
    await of.turn()
    async with watched(of, log) as http:
        answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f"reballast_worker_shards {topics.SHARDS}.0" in answer.text
    assert f"reballast_worker_ownerships_total {topics.SHARDS}.0" in answer.text


async def test_worker_serves_no_other_paths() -> None:
    log = Failing()
    async with watched(worker.Worker(log, lambda: 0), log) as http:
        assert (await http.get("/api/v1/bindings")).status_code == 404
        assert (await http.post("/metrics")).status_code == 405
