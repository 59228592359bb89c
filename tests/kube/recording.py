"""A server that serves discovery to kubectl, records its requests, and refuses them."""

import json
import shutil
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from engine.kubeapi.schema import discovery, resources
from events.json_values import Json

_REFUSAL = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}'


class Request(NamedTuple):
    method: str
    path: str
    content_type: str
    body: bytes
    accept: str


class Kubectl:
    """The installed kubectl versions, configured for the server."""

    def __init__(self, folder: Path, port: int, requests: list[Request]) -> None:
        self._folder = folder
        self.requests = requests
        cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
        config: Json = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "contexts": [context],
            "users": [{"name": "me", "user": {}}],
            "current-context": "here",
        }
        (folder / "config").write_text(json.dumps(config))

    def posts(self, program: str, *words: str) -> Request:
        """Return the only request that a command posts."""
        self.requests.clear()
        self._run(program, *words)
        posted = [request for request in self.requests if request.method == "POST"]
        assert len(posted) == 1, self.requests
        return posted[0]

    def dry(self, program: str, *words: str) -> object:
        """Return what a command would send, as kubectl prints it."""
        first, second, *others = words
        printed = self.prints(program, first, second, "--dry-run=client", "-o", "json", *others)
        return json.loads(printed)

    def prints(self, program: str, *words: str) -> str:
        """Return the standard output of a command."""
        return self._run(program, *words).stdout

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        options = ("--kubeconfig", str(self._folder / "config"), "--cache-dir", str(self._folder / "cache"))
        return subprocess.run(
            (program, *options, *words), capture_output=True, text=True, timeout=60, check=False
        )


def programs() -> list[str]:
    """Return every installed kubectl: the one on the PATH, and its neighbours named by version."""
    first = shutil.which("kubectl")
    if first is None:
        return []
    return [first, *sorted(str(path) for path in Path(first).resolve().parent.glob("kubectl.1.*"))]


def _discovery(path: list[str], accept: str, *, old: bool) -> tuple[str, Mapping[str, object] | None]:
    """Return media type and document; ``old``: as a server with the old discovery format only."""
    catalogue = resources.control_plane()
    plain = "application/json"
    aggregated = discovery.negotiated(accept)
    match path:
        case ["version"]:
            return plain, discovery.VERSION
        case ["api" | "apis" as root] if aggregated and not old:
            answer = discovery.aggregated(catalogue, core=root == "api", version=aggregated)
            return discovery.aggregated_type(aggregated), answer
        case ["api"]:
            return plain, discovery.api_versions("127.0.0.1:6443")
        case ["apis"]:
            return plain, discovery.api_groups(catalogue)
        case ["api", version]:
            return plain, discovery.api_resources(catalogue, "", version)
        case ["apis", group, version]:
            return plain, discovery.api_resources(catalogue, group, version)
        case _:
            return plain, None


@contextmanager
def kubectl(
    folder: Path, *, old: bool = False, answers: Mapping[str, Mapping[str, object]] | None = None
) -> Generator[Kubectl]:
    """Yield a kubectl and its server; ``answers`` are documents by path."""
    requests: list[Request] = []

    class Recorder(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind = self.headers.get("Content-Type") or ""
            accept = self.headers.get("Accept") or ""
            requests.append(Request(self.command, self.path, kind, body, accept))
            path = self.path.partition("?")[0]
            media, answer = _discovery(path.strip("/").split("/"), accept, old=old)
            answer = (answers or {}).get(path, answer)
            self.send_response(403 if answer is None else 200)
            content = _REFUSAL if answer is None else json.dumps(answer).encode()
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815  # the names that the base class calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base class
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Kubectl(folder, server.server_address[1], requests)
        finally:
            server.shutdown()
            thread.join()
