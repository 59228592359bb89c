"""How much code runs for one create through the Kubernetes API, from the request until the log gets the record."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from engine.log.local import MemoryLog
from events.records import Record, StoredRecord
from tests.api.servers import kube_client, serving
from tests.builders import manifests
from tests.tidy import trees

_PATH: Final = "/apis/apps/v1/namespaces/default/deployments"
_OURS: Final = tuple(f"{trees.ROOT / name}/" for name in ("engine", "events", "projections"))


class _CountingLog(MemoryLog):
    """Notes which functions run while it waits for a record."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[CodeType] = set()
        self.is_waiting = False

    def entered(self, frame: FrameType, event: str, _: object) -> None:
        if self.is_waiting and event == "call" and frame.f_code.co_filename.startswith(_OURS):
            self.found.add(frame.f_code)

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        self.is_waiting = False
        return await super().append(batch)


async def functions() -> set[tuple[Path, str]]:
    """Return the file and name of each function that runs for the second create of a Deployment.

    The first one fills the caches, as on a server that runs.
    """
    log = _CountingLog()
    threading.setprofile(log.entered)
    sys.setprofile(log.entered)
    try:
        async with serving(log=log) as services, kube_client(services) as client:
            for name in ("first", "second"):
                await services.views.wait_folded(log.last_number())
                log.found.clear()
                log.is_waiting = True
                answer = await client.post(_PATH, json=manifests.deployment(name))
                answer.raise_for_status()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # the stubs leave out that None ends it
    return {
        (Path(code.co_filename), code.co_qualname) for code in log.found if not code.co_name.startswith("<")
    }
