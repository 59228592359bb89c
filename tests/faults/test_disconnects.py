"""Clients that disconnect in the middle of a body, and secrets in the server's log."""

import json
import re
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import leaks
from tests.cli.servers import output_of, running

COMMANDS = (
    "/kubernetes/api/v1/namespaces/default/secrets",
    "/kubernetes/apis/apps/v1/namespaces/default/deployments",
    "/api/v1/members/member1/fault",
    "/api/v1/agents/member1/reports",
)
OBJECTS = (
    "/api/v1/namespaces/default/secrets",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
)


def vanish(url: str, path: str, token: str) -> None:
    """Send a request's head and a part of its body, and disconnect while the server reads the body."""
    where = urlsplit(url)
    with socket.create_connection(("127.0.0.1", where.port or 0)) as plain:
        sent = f"POST {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\n"
        sent += "Content-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) if where.scheme == "https" else plain as connection:
            connection.sendall(sent.encode())
            assert connection.recv(64).startswith(b"HTTP/1.1 100")
            connection.sendall(b'{"data": {"password": "')


@pytest.mark.slow
def test_disconnected_client_is_logged_in_one_line_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REBALLAST_LOG_LEVEL", "debug")
    data = tmp_path / "data"
    with running(data):
        endpoint: dict[str, Any] = json.loads((data / "endpoint.json").read_bytes())
        for path in COMMANDS:
            vanish(endpoint["url"], path, endpoint["token"])
        for path in OBJECTS:
            vanish(endpoint["kube_url"], path, endpoint["token"])
    output = output_of(data).read_text()
    assert re.findall(r"client disconnected +method=POST path=(\S+)", output) == [*COMMANDS, *OBJECTS]
    assert "Traceback" not in output
    assert endpoint["token"] not in output
    assert leaks.leaks(tmp_path) == []


def test_leaked_secrets_in_logs_are_found(tmp_path: Path) -> None:
    token = "s3cr3t-s3cr3t-s3cr3t-s3cr3t"  # noqa: S105  # it opens nothing
    (tmp_path / "server.token").write_text(token + "\n")
    (tmp_path / "output").write_text(f"a line\nheaders={{'x': b'{token}'}}\n╭──── locals ────╮\n")
    masked = [leak.partition(":")[2] for leak in leaks.leaks(tmp_path)]
    # Otherwise the check at the end of the run would find them too.
    (tmp_path / "output").unlink()
    assert masked == ["2: headers={'x': b'[secret]'}", "3: ╭──── [secret]───╮"]


@pytest.mark.slow
def test_every_log_line_is_a_json_object_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALLAST_LOG_FORMAT", "json")
    data = tmp_path / "data"
    with running(data):
        endpoint: dict[str, Any] = json.loads((data / "endpoint.json").read_bytes())
        url = urlsplit(str(endpoint["url"]))
        with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
            connection.sendall(b"no request of HTTP\r\n\r\n")
            assert connection.recv(64).startswith(b"HTTP/1.1 400")
    lines = output_of(data).read_text().splitlines()
    logged: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]

    assert [line for line in lines if re.match(r"\d{4}-\d\d-\d\d ", line)] == []
    assert {"info", "warning"} == {line["level"] for line in logged}
    assert all(re.fullmatch(r"[0-9T:.-]+Z", line["time"]) for line in logged)
    assert "Invalid HTTP request received." in [line["event"] for line in logged]
    assert {"ready", "shards recovered"} <= {line["event"] for line in logged}
