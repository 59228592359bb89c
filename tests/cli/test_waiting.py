"""How long commands wait for a server that takes its time."""

import io
import sys
import threading
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
ENOUGH_SECONDS = 20.0


class Slow(BaseHTTPRequestHandler):
    may_answer = threading.Event()
    seconds = WORK_SECONDS

    def do_GET(self) -> None:
        self.may_answer.wait(self.seconds)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"findings": []}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base class
        """Log nothing."""


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.is_written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.is_written.set()
        return super().write(text)


@pytest.fixture
def slow_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    # Its end waits for all answers: one to a client that has left prints an error, which the next test would read.
    server.daemon_threads = False
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
def test_terminal_shows_that_a_server_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(Slow, "may_answer", terminal.is_written)
    monkeypatch.setattr(Slow, "seconds", ENOUGH_SECONDS)
    with Client(None) as client:
        client.verify(Report)
    assert terminal.getvalue() == "\r\x1b[Kwaiting for the server\r\x1b[K"


@pytest.mark.usefixtures("slow_server")
def test_terminal_shows_nothing_before_that(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "SILENT_SECONDS", 3_600.0)
    with Client(None) as client:
        client.verify(Report)
    assert terminal.getvalue() == ""
