"""The view of steps: how far each shard's owner has come, and which of its steps count."""

from typing import Final

import msgspec
from msgspec import Struct

from events import shapes, topics
from events.chain import Chain
from events.decisions import StepTaken
from events.records import StoredRecord
from projections.port import Row, Rows

SCHEMA: Final = "CREATE TABLE steps (shard INTEGER PRIMARY KEY, body BLOB NOT NULL);"


class ShardSteps(Struct):
    """The chain of a shard, and what its last step said: its number in the log, its time, and where its inputs end."""

    chain: Chain
    at_number: int = 0
    time_ms: int = 0
    release: str = ""
    ends: dict[str, int] = {}


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(ShardSteps).decode


class Steps:
    """Tells which decisions count."""

    def __init__(self, rows: Rows) -> None:
        self._shards = {shard: ShardSteps(Chain(shard)) for shard in range(topics.SHARDS)}
        shard: int
        body: bytes
        for shard, body in rows.select("SELECT shard, body FROM steps"):
            self._shards[shard] = decode(body)
        self._by_text = {str(shard): steps.chain for shard, steps in self._shards.items()}
        self._changed: set[int] = set()

    def take(self, record: StoredRecord, data: shapes.Event) -> bool:
        """Whether the next decision of the record's shard counts."""
        if record.partition not in self._shards:
            return False
        shard = self._shards[record.partition]
        counts = shard.chain.take(record, data)
        self._changed.add(record.partition)
        if counts and isinstance(data, StepTaken):
            shard.at_number = record.number
            shard.time_ms = data.time_ms
            shard.release = data.release
            shard.ends = data.ends
        return counts

    def gave(self, output: str) -> bool:
        """Whether a record of another topic is an output of a step that counted."""
        shard, _, _ = output.partition("-")
        chain = self._by_text.get(shard)
        return chain is not None and chain.gave(output)

    def time_ms(self, shard: int) -> int:
        """The time of the shard's last step that counted."""
        return self._shards[shard].time_ms

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        changed: list[Row] = [(shard, _encode(self._shards[shard])) for shard in sorted(self._changed)]
        rows.write("INSERT OR REPLACE INTO steps VALUES (?, ?)", changed)
        self._changed = set()
