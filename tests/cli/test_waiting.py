"""How long commands wait for a server that takes its time."""

import io
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.cli import output
from engine.cli.client import Client
from engine.cli.failures import Failure
from engine.http.query.response_types import Listing
from engine.proof.verification import Report

ANSWER_SECONDS = 0.1
WORK_SECONDS = 0.5


class Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(WORK_SECONDS)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"findings": []}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base class
        """Log nothing."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def slow_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("REBALLAST_SERVER", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("REBALLAST_TOKEN", "a-token")
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("slow_server")
def test_proof_of_the_log_may_take_longer_than_other_answers() -> None:
    with Client(None, answer_seconds=ANSWER_SECONDS) as client:
        assert client.verify(Report) == Report()
        with pytest.raises(Failure, match="does not answer"):
            client.get("bindings", Listing)


@pytest.mark.usefixtures("slow_server")
@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "\r\x1b[Kwaiting for the server\r\x1b[K"), (3_600.0, "")]
)
def test_terminal_shows_that_a_server_takes_its_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shown: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "SILENT_SECONDS", seconds)
    with Client(None) as client:
        client.verify(Report)
    assert terminal.getvalue() == shown
