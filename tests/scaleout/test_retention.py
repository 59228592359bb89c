"""Records thrown away that somebody still needs: he refuses to go on, names what is missing, and says what to do."""

# aiokafka has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import time
from pathlib import Path
from typing import Final

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from engine.cli import failures
from events import keys
from tests.scaleout import history
from tests.scaleout.installation import Installation
from tests.scaleout.loads import spread
from tests.scaleout.processes import Process

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

SHARD: Final = keys.shard_of(keys.binding_key("Deployment", "default", spread("w0")[0]))
MISSING: Final = f"specs/{SHARD} is not kept from 0 on any more"
REMEDY: Final = "restore its records, or begin with a snapshot that is newer"
_SETTLED_S: Final = 1.5


async def throw_away(servers: str, prefix: str, topic: str, partition: int) -> None:
    """Has the broker delete all that a partition holds."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        place = TopicPartition(f"{prefix}.{topic}", partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=-1)})
    finally:
        await admin.close()


def test_a_worker_without_the_records_behind_its_checkpoint_refuses_and_says_what_to_do(
    running: Installation, tmp_path: Path
) -> None:
    running.load.until_more(10, 60.0, lambda: running.told("no answers"))
    running.load.stop()
    running.until_decided()
    # Killed, they leave no snapshots: whoever comes next reads from the beginning.
    for worker in running.workers:
        worker.kill()
    asyncio.run(throw_away(running.servers, running.prefix, "specs", SHARD))
    before = steps(running)

    worker = running.workers[0]
    worker.launch()
    worker.wait_until(lambda: MISSING in worker.said())
    time.sleep(_SETTLED_S)

    assert REMEDY in worker.said()
    assert "Traceback" not in worker.said()
    assert steps(running) == before
    # Who keeps views, and has none yet, can't begin either.
    projector = Process("late", running.log, tmp_path, "projector", "--data", str(tmp_path / "late" / "data"))
    projector.launch()
    try:
        assert projector.ended() == failures.FAILED
        assert f"error: {MISSING}; {REMEDY}" in " ".join(projector.said().split())
    finally:
        projector.kill()


def steps(running: Installation) -> int:
    """How many steps the shard has taken."""
    found = history.read(running.servers, running.prefix)
    return sum(entry.kind == "step-taken" for entry in found.entries["decisions", SHARD])
