"""Commands for the server that the environment names, if it does not answer or rejects them."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.cli import failures, main, server_location
from tests.api.servers import TOKEN, on_a_port
from tests.api.story_records import written
from tests.deciders.story import Story


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server without TLS."""
    with on_a_port(asyncio.run(written(Story()))) as served:
        yield served.url


def errors_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str, token: str, code: int
) -> str:
    """Return the errors of a command for the server at an address."""
    monkeypatch.setenv(server_location.SERVER_VARIABLE, address)
    monkeypatch.setenv(server_location.TOKEN_VARIABLE, token)
    assert main.run(["get", "deploy"]) == code
    return capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_server_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    message, remedy = errors_of(monkeypatch, capsys, address, "token", code=3).splitlines()
    assert message.startswith(f"error: {address} does not answer: ")
    assert "correct or unset REBALLAST_SERVER" in remedy


def test_data_directory_of_a_command_takes_precedence_over_a_named_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    monkeypatch.setenv(server_location.SERVER_VARIABLE, url)
    monkeypatch.setenv(server_location.TOKEN_VARIABLE, TOKEN)
    assert main.run(["get", "clusters"]) == failures.OK
    assert main.run(["get", "clusters", "--data", str(tmp_path)]) == failures.NO_SERVER
    assert f"no server runs on {tmp_path}" in capsys.readouterr().err


def test_https_address_of_a_server_without_tls_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    address = url.replace("http:", "https:")
    errors = errors_of(monkeypatch, capsys, address, TOKEN, code=3)
    assert f"{address} does not answer: it does not use TLS; write http:// instead of https://\n" in errors


def test_missing_and_wrong_tokens_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    missing = errors_of(monkeypatch, capsys, url, "", code=1)
    assert missing.startswith("error: REBALLAST_TOKEN is not set\n")
    wrong = errors_of(monkeypatch, capsys, url, "wrong", code=1)
    assert wrong == (
        f"error: {url} rejects the token\n  set REBALLAST_TOKEN to the token in the server's endpoint.json\n"
    )


def test_server_of_another_program_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        errors = errors_of(monkeypatch, capsys, f"http://127.0.0.1:{other.server_port}", "token", code=1)
        other.shutdown()
    assert "the server answered 501" in errors
    assert "check that the address is that of a Reballast server" in errors


def test_pods_of_real_clusters_are_listed_by_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setenv(server_location.SERVER_VARIABLE, url)
    monkeypatch.setenv(server_location.TOKEN_VARIABLE, TOKEN)
    assert main.run(["get", "pods"]) == failures.FAILED
    assert "no members are simulated here" in (errors := capsys.readouterr().err)
    assert "kubectl get pods" in errors
