"""The source of a run's broker; a run without a broker fails."""

import os
import subprocess
import sys

import pytest

from tests.brokers import choosing, containers, fixtures
from tests.tidy import trees


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(choosing.SERVERS, raising=False)
    monkeypatch.delenv(choosing.FROM, raising=False)


def test_named_broker_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choosing.SERVERS, "broker:9092")
    assert choosing.way() is choosing.Way.ENV


def test_docker_is_the_default_if_it_is_available() -> None:
    expected = choosing.Way.DOCKER if containers.docker_answers() else choosing.Way.LOCAL
    assert choosing.way() is expected


def test_source_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choosing.SERVERS, "broker:9092")
    monkeypatch.setenv(choosing.FROM, "local")
    assert choosing.way() is choosing.Way.LOCAL


def test_unknown_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choosing.FROM, "mock")
    with pytest.raises(ValueError, match="mock"):
        choosing.way()


def run_single_test(**environment: str) -> subprocess.CompletedProcess[str]:
    test = "tests/brokers/test_processes.py::test_record_is_appended_to_the_broker_of_the_run"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=trees.ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_run_uses_the_named_broker(kafka: str) -> None:
    run = run_single_test(**{choosing.SERVERS: kafka})
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout


@pytest.mark.slow
def test_run_without_a_broker_fails() -> None:
    run = run_single_test(**{choosing.FROM: "env"})
    assert run.returncode == fixtures.NO_BROKER, run.stdout
    assert f"no Kafka broker for the tests: KeyError: '{choosing.SERVERS}'" in run.stdout + run.stderr
