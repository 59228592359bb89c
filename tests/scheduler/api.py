"""A Kubernetes API in memory with Karmada's kinds, and with faults on demand."""

import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from starlette.responses import Response, StreamingResponse

from engine.agent.kubeconfigs import Access
from engine.bench import karmada_api
from engine.bench.karmada_api import Json

__all__ = ["Api", "Json", "serving"]


class Api(karmada_api.Api):
    """The API; ``faults`` happen to the next writes, but for the Lease.

    ``cut`` ends the connection, ``lost`` after the write, a code is answered. While ``is_silent`` watches deliver
    nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.is_silent = False

    def restorer(self) -> Callable[[], None]:
        """Back up the state; return what restores it, as etcd would: the version is again that of the backup."""
        objects, version = copy.deepcopy(self.objects), self._version

        def restore() -> None:
            self.objects, self._version = objects, version
            self._changes = [change for change in self._changes if change[0] <= version]

        return restore

    def _note(self, change: str, plural: str, manifest: Json) -> None:
        if not self.is_silent:
            super()._note(change, plural, manifest)

    def answered(self, plural: str, write: Callable[[], Response]) -> Response:
        fault = self.faults.pop(0) if self.faults and plural != "leases" else ""
        if fault.isdecimal():
            return karmada_api.status(int(fault), "Fault")
        if fault == "cut":
            return StreamingResponse(_nothing())
        response = write()
        return StreamingResponse(_nothing()) if fault == "lost" else response


async def _nothing() -> AsyncGenerator[bytes]:
    raise ConnectionAbortedError
    yield b""


@asynccontextmanager
async def serving(api: Api) -> AsyncGenerator[Access]:
    """Serve the API until the block ends."""
    async with karmada_api.serving(api.routes()) as url:
        yield Access(server=url)
