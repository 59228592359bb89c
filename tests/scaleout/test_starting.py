"""Brokers that are down at the start: each process reports it within seconds and exits, so it can be restarted.

A process that waited would look healthy; restarts are up to the supervisor, which needs only an exit code.
"""

from pathlib import Path
from typing import Final

import pytest

from engine.cli import failures
from tests.brokers import configuration
from tests.brokers.processes import LocalBrokers
from tests.rounds import ROUNDS
from tests.scaleout.installation import installed
from tests.scaleout.processes import Process

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

PARTS: Final = ("worker", "api", "projector", "up")
_ENDS_S: Final = 120.0


def test_processes_without_brokers_exit_with_a_message_and_start_once_brokers_run(tmp_path: Path) -> None:
    with LocalBrokers(1, properties=configuration.RESTARTED) as brokers:
        brokers.kill(1)
        for number in range(max(1, ROUNDS // len(PARTS))):
            parts = [_part(part, f"{part}{number}", brokers.servers, tmp_path) for part in PARTS]
            for part in parts:
                part.launch()
            for part in parts:
                assert part.ended(_ENDS_S) == failures.FAILED, part.last_lines()
                assert f"the topics at {brokers.servers} were not prepared" in part.output()
                assert "check that the brokers are up and that the address is right" in part.output()
                assert "Traceback" not in part.output()
        brokers.up(1)

        with installed(brokers.servers, _new_directory(tmp_path / "running")) as running:
            running.load.until_more(5, _ENDS_S, lambda: running.with_output("no answers"))
            running.prove()


def _new_directory(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _part(kind: str, name: str, servers: str, directory: Path) -> Process:
    data = () if kind == "worker" else ("--data", str(directory / name / "data"))
    return Process(name, f"kafka://{servers}/down", directory, kind, *data)
