"""What our code uses of aiokafka that its authors have not promised: each attribute by name, with where it is used.

They may go with any release, so the library is pinned; whoever raises the pin looks here first.
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
    "_message_accumulator": {"engine/log/kafka/clients.py", "events/client/producer.py"},
    "_txn_manager": {"engine/log/kafka/clients.py"},
    "_batch_ttl": {"engine/log/kafka/clients.py", "events/client/producer.py"},
    "_batches": {"engine/log/kafka/clients.py"},
    "_pending_batches": {"engine/log/kafka/clients.py"},
    "_drain_waiter": {"engine/log/kafka/clients.py"},
}
UNDOCUMENTED = [
    (sender, "BACKOFF_OVERRIDE"),
    (conn, "AIOKafkaConnection"),
    (conn.AIOKafkaConnection, "send"),
    (conn.AIOKafkaConnection, "close"),
    (MessageAccumulator, "fail_all"),
    (TransactionManager, "wait_for_transaction_end"),
]


async def test_every_private_attribute_is_there() -> None:
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
def test_what_is_undocumented_is_there(owner: object, name: str) -> None:
    assert hasattr(owner, name)


def test_all_that_is_used_is_named_here() -> None:
    assert _used() == PRIVATE


def test_the_library_is_pinned_as_long_as_any_is_used() -> None:
    project = tomllib.loads((trees.ROOT / "pyproject.toml").read_text())
    (wanted,) = (
        Requirement(each) for each in project["project"]["dependencies"] if each.startswith("aiokafka")
    )
    assert str(wanted.specifier) == "==0.14.*"


def _used() -> dict[str, set[str]]:
    """Private attributes of anything but the object itself, in the modules that import the library."""
    found: dict[str, set[str]] = {}
    for path in trees.modules():
        name, text = trees.name_of(path), path.read_text()
        if name.startswith("tests/") or "aiokafka" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    pass
                case ast.Attribute(attr=attribute) if re.match("_[a-z]", attribute):
                    found.setdefault(attribute, set()).add(name)
                case _:
                    pass
    return found
