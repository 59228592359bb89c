"""Private attributes of aiokafka that our code uses: each one by name, with its users.

They may disappear with any release, so the library is pinned; check this list before raising the pin.
"""

# pyright: reportMissingTypeStubs=false
import ast
import re
import tomllib

import pytest
from aiokafka import AIOKafkaProducer, conn
from aiokafka.producer import sender
from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch
from aiokafka.producer.transaction_manager import TransactionManager
from packaging.requirements import Requirement

from tests.tidy import trees

PRIVATE = {
    "_message_accumulator": {"events/client/undelivered.py"},
    "_txn_manager": {"engine/log/kafka/clients.py"},
    "_batch_ttl": {"events/client/undelivered.py"},
    "_batches": {"events/client/undelivered.py"},
    "_pending_batches": {"events/client/undelivered.py"},
    "_drain_waiter": {"events/client/undelivered.py"},
}
UNDOCUMENTED = [
    (sender, "BACKOFF_OVERRIDE"),
    (conn, "AIOKafkaConnection"),
    (conn.AIOKafkaConnection, "send"),
    (conn.AIOKafkaConnection, "close"),
    (MessageAccumulator, "fail_all"),
    (MessageAccumulator, "reenqueue"),
    (TransactionManager, "wait_for_transaction_end"),
]


async def test_every_private_attribute_exists() -> None:
    producer = AIOKafkaProducer(enable_idempotence=True, transactional_id="a")
    accumulator = producer._message_accumulator  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    batch = MessageBatch(None, None, 1.0, 0)
    owners: list[object] = [producer, accumulator, batch]
    assert {name for name in PRIVATE if not any(hasattr(owner, name) for owner in owners)} == set()
    manager = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert isinstance(accumulator, MessageAccumulator)
    assert isinstance(manager, TransactionManager)
    await producer.stop()


@pytest.mark.parametrize(("owner", "name"), UNDOCUMENTED, ids=[name for _, name in UNDOCUMENTED])
def test_every_undocumented_attribute_exists(owner: object, name: str) -> None:
    assert hasattr(owner, name)


def test_list_of_private_attributes_is_complete() -> None:
    assert _used() == PRIVATE


def test_library_is_pinned_while_private_attributes_are_used() -> None:
    project = tomllib.loads((trees.ROOT / "pyproject.toml").read_text())
    (requirement,) = (
        Requirement(line) for line in project["project"]["dependencies"] if line.startswith("aiokafka")
    )
    assert str(requirement.specifier) == "==0.14.*"


def _used() -> dict[str, set[str]]:
    """Return the private attributes of other objects, in the modules that import the library."""
    used: dict[str, set[str]] = {}
    for path in trees.modules():
        name, text = trees.name_of(path), path.read_text()
        if name.startswith("tests/") or "aiokafka" not in text:
            continue
        for node in trees.nodes(path, ast.Attribute):
            match node:
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    pass
                case ast.Attribute(attr=attribute) if re.match("_[a-z]", attribute):
                    used.setdefault(attribute, set()).add(name)
                case _:
                    pass
    return used
