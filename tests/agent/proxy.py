"""HTTP proxy in front of a member's API that passes requests, or on demand answers 429, or fails them all."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.agent.servers import Server

_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_START_S: Final = 30.0
_ANSWER_S: Final = 600.0


class Proxy:
    """Runs in its own thread; its attributes may be set from other threads."""

    def __init__(self, server: Server) -> None:
        self.throttled = 0
        self.refused = 0
        self.is_throttling = False
        self.is_down = False
        self._server = server
        self._watches: set[asyncio.Task[object]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._uvicorn: uvicorn.Server | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.port = 0

    def start(self) -> None:
        """Start listening."""
        self._thread.start()
        assert self._ready.wait(_START_S)

    def stop(self) -> None:
        """Stop listening."""
        assert self._uvicorn is not None
        self._uvicorn.force_exit = self._uvicorn.should_exit = True
        self._thread.join(_START_S)

    def fall(self) -> None:
        """Cancel all open responses (watches), and answer 503 from now on."""
        self.is_down = True
        assert self._loop is not None
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._watches])

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that connects through the proxy without TLS; return its path."""
        config = yaml.safe_load(self._server.kubeconfig.read_text())
        for entry in config["clusters"]:
            entry["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path.write_text(yaml.safe_dump(config))
        return path

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        application = Starlette(routes=[Route("/{path:path}", self._answer, methods=_METHODS)])
        config = uvicorn.Config(
            application, port=0, lifespan="off", log_level="error", timeout_graceful_shutdown=1
        )
        self._uvicorn = uvicorn.Server(config)
        serving = asyncio.create_task(self._uvicorn.serve())
        # uvicorn has no event to wait for
        while not self._uvicorn.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        self.port = self._uvicorn.servers[0].sockets[0].getsockname()[1]
        self._ready.set()
        await serving

    async def _answer(self, request: Request) -> Response:
        if self.is_down:
            self.refused += 1
            return Response("nobody is here", 503)
        if self.is_throttling:
            self.throttled += 1
            return Response("{}", 429, headers={"retry-after": "1"})
        kube = self._server.kube
        client = httpx.AsyncClient(
            base_url=kube.base_url, verify=self._server.tls, timeout=_ANSWER_S, trust_env=False
        )
        headers = {
            name: text
            for name, text in request.headers.items()
            if name in {"authorization", "content-type", "accept"}
        }
        forwarded = client.build_request(
            request.method,
            request.url.path,
            params=dict(request.query_params),
            content=await request.body(),
            headers=headers,
        )
        answer = await client.send(forwarded, stream=True)

        async def body() -> AsyncGenerator[bytes]:
            task: asyncio.Task[object] | None = asyncio.current_task()
            assert task is not None
            self._watches.add(task)
            try:
                async for chunk in answer.aiter_bytes():
                    yield chunk
            finally:
                self._watches.discard(task)
                await answer.aclose()
                await client.aclose()

        kept = {"content-type": answer.headers.get("content-type", "application/json")}
        return StreamingResponse(body(), answer.status_code, headers=kept)


@contextmanager
def before(server: Server) -> Generator[Proxy]:
    """A proxy for the duration of the block."""
    proxy = Proxy(server)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
