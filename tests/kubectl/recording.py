"""Record the write requests of a kubectl version: ``python -m tests.kubectl.recording PROGRAM FILE``.

Older versions send JSON where newer ones send protobuf, and not every machine has all versions. Each line of
a file is a request with method, path and query, content type and body, and the status code of its response.
"""

import asyncio
import base64
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.http.kube.app import create_app
from tests.api.servers import NOW_MS, TOKEN, serving

FOLDER: Final = Path(__file__).parent / "recorded"
COMMANDS: Final = (
    "create namespace team",
    "create deployment web --image nginx --replicas 2 --port 80",
    "create configmap settings --from-literal a=b --from-literal c=d",
    "create secret generic keys --from-literal a=b",
    "create serviceaccount robot",
    "create job once --image busybox -- sleep 5",
    "create cronjob often --image busybox --schedule=@daily -- date",
    "create service clusterip web --tcp 80:8080",
    "create ingress web --rule=example.com/=web:80",
    "create role reader --verb get --verb list --resource pods",
    "create rolebinding reader --role reader --user jane",
    "create clusterrole reader --verb get --resource nodes",
    "create clusterrolebinding reader --clusterrole reader --group team",
    "create priorityclass high --value 1000",
    "create poddisruptionbudget web --selector app=web --min-available 1",
    "create quota small --hard pods=4",
    "label deployment web tier=gold",
    "annotate deployment web note=x",
    "scale deployment web --replicas 5",
    "set image deployment/web nginx=nginx:2",
    "set env deployment/web A=b",
    'patch deployment web -p {"spec":{"replicas":3}}',
    "expose deployment web --name web2",
    "delete service web2",
    "delete configmap settings",
)
KUBECONFIG: Final = """
apiVersion: v1
kind: Config
clusters: [{{name: it, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {{}}}}]
contexts: [{{name: it, context: {{cluster: it, user: me, namespace: team}}}}]
current-context: it
"""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded write request and the status code of its response."""

    method: str
    path: str
    type: str
    body: str
    code: int

    @property
    def content(self) -> bytes:
        """The request body."""
        return base64.b64decode(self.body)


def read(path: Path) -> list[Sent]:
    """Return the requests in a file."""
    return [msgspec.json.decode(line, type=Sent) for line in path.read_bytes().splitlines()]


class Recorder:
    """Middleware that records write requests; adds the token, which kubectl sends over TLS only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.kept: list[Sent] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and record it if it writes."""
        scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]}
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        body = bytearray()

        async def receive_recorded() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._keep(scope, bytes(body), int(message["status"]))
            await send(message)

        await self._app(scope, receive_recorded, send_recorded)

    def _keep(self, scope: Scope, body: bytes, code: int) -> None:
        query = scope["query_string"].decode()
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.kept.append(
            Sent(
                method=scope["method"],
                path=scope["path"] + (f"?{query}" if query else ""),
                type=headers.get("content-type", ""),
                body=base64.b64encode(body).decode(),
                code=code,
            )
        )


async def _record(program: str, path: Path) -> None:
    async with serving() as services:
        recorder = Recorder(create_app(services, lambda: NOW_MS))
        server = uvicorn.Server(uvicorn.Config(recorder, port=0, lifespan="off", log_level="error"))
        task = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event to wait for
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            config = Path(directory) / "config"
            config.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{port}"))
            for command in COMMANDS:
                await asyncio.to_thread(
                    subprocess.run,
                    [program, *command.split()],
                    env={"HOME": directory, "KUBECONFIG": str(config)},
                    check=True,
                )
        path.write_bytes(  # noqa: ASYNC240  # no other task runs on this loop now
            b"".join(msgspec.json.encode(request) + b"\n" for request in recorder.kept)
        )
        server.should_exit = True
        await task


if __name__ == "__main__":
    asyncio.run(_record(sys.argv[1], Path(sys.argv[2])))
