"""The tour: its private server is stopped and removed, and on another server it touches nothing that is not its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import main, private_server, server_location, tour
from engine.cli.client import Client
from engine.objects.bindings import Binding
from tests.cli.servers import Shell

STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


def test_hanging_tour_server_is_killed_and_its_directory_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "private"
    directory.mkdir()
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def stubborn(*_args: object, **_options: object) -> subprocess.Popen[bytes]:
        # A real process in place of the server; it is ready at once and ignores SIGTERM.
        endpoint = directory / server_location.FILE
        started.append(popen([sys.executable, "-c", STUBBORN, str(endpoint)]))
        return started[0]

    monkeypatch.setattr(private_server.subprocess, "Popen", stubborn)
    monkeypatch.setattr(private_server, "_STOP_SECONDS", 0.1)
    with tour.running_server(directory, is_kept=False):
        pass
    assert started[0].poll() is not None
    assert not directory.exists()


def test_tour_does_not_touch_a_policy_of_the_user(shell: Shell) -> None:
    shell.apply(tour.DEPLOYMENT.partition("---\n")[2].replace("name: foo", "name: own"))
    before = shell("get", "pp", "default-pp", "-o", "json")

    shell("tour", code=1)

    assert "default/default-pp exists already" in shell.errors
    assert shell("get", "pp", "default-pp", "-o", "json") == before
    shell("delete", "pp", "default-pp")


def test_tour_does_not_evict_workloads_of_the_user(shell: Shell, tmp_path: Path) -> None:
    objects = tmp_path / "own.yaml"
    objects.write_text(tour.DEPLOYMENT.replace("name: foo", "name: own").replace("default-pp", "own"))
    shell("apply", "-f", str(objects))
    shell.until_true(lambda: "member1" in shell("get", "deploy", "own"))

    shell("tour", code=1)

    assert "member1 runs own-deployment, and the tour would evict all workloads" in shell.errors
    shell("delete", "-f", str(objects))
    shell.until_true(lambda: "own" not in shell("get", "rb"))


def test_interrupted_tour_removes_its_taint(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    find = Client.find

    def interrupted(client: Client, path: str, kind: type[Binding], /, **query: str) -> Binding | None:
        if "workload-rebalancer-test" in shell("get", "clusters", "-o", "wide"):
            raise KeyboardInterrupt
        return find(client, path, kind, **query)

    with monkeypatch.context() as patched:
        patched.setattr(Client, "find", interrupted)
        with pytest.raises(SystemExit):
            main.run(["tour", "--data", str(shell.directory)])
    assert "workload-rebalancer-test" not in shell("get", "clusters", "-o", "wide")
    assert "foo" not in shell("get", "deploy")


def test_directory_of_the_tour_that_is_a_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main.run(["tour", "--data", str(tmp_path / "file")]) == 1
    assert "Not a directory" in capsys.readouterr().err
