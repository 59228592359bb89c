"""Questions to the views of a few records."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engine.log.local import MemoryLog
from events.records import Record
from events.validation import manifests
from projections.port import Rows
from projections.runner import Projector
from projections.store import Store
from tests.builders.documents import document_of

Ask = Callable[[Callable[[Rows], Any]], Any]


async def views_of(batch: Sequence[Record]) -> Ask:
    """Return a function that queries the views of these records; answers are as in JSON."""
    log, store = MemoryLog(), await asyncio.to_thread(Store)
    await log.append(batch)
    projector = Projector(log, store, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()

    def answer(question: Callable[[Rows], object]) -> object:
        with store.reading() as rows:
            return msgspec.json.decode(msgspec.json.encode(question(rows), enc_hook=document_of))

    async def ask(question: Callable[[Rows], object]) -> object:
        return await asyncio.to_thread(answer, question)

    return ask
