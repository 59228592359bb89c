"""Shutdown while the brokers are gone: each process exits in time, and reports what it could not wait for."""

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from engine.process import stop_signals
from tests.brokers.processes import LocalBrokers
from tests.scaleout.processes import Api, Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

_SPARE_S: Final = 60.0


def test_processes_stop_in_time_without_brokers(tmp_path: Path) -> None:
    with LocalBrokers(1) as brokers:
        log = f"kafka://{brokers.servers}/gone"
        worker, api = Worker("worker", log, tmp_path), Api("api", log, tmp_path)
        parts = (worker, api)
        for part in parts:
            part.launch()
        worker.wait_until(worker.has_shards)
        api.wait_until(api.answers)
        brokers.kill(1)

        for part in parts:
            os.kill(part.pid, signal.SIGTERM)
        for part in parts:
            code = part.ended(stop_signals.END_SECONDS + _SPARE_S)
            assert code == 0 or "did not stop in time" in part.output(), part.last_lines()
            assert "Traceback" not in part.output(), part.last_lines()
