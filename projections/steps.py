"""Projection of steps: the last valid step of each shard, and the outputs that valid steps declare.

``events.chain`` determines which steps are valid, that is in effect; those of a fenced owner are not.
"""

from typing import Final

import msgspec
from msgspec import Struct

from events import records, shapes, topics
from events.chain import Chain
from events.decisions import StepTaken
from events.json_values import canonical_json
from events.outputs import Judgement, Outputs
from events.records import StoredRecord
from projections.port import Row, Rows

SCHEMA: Final = """
CREATE TABLE steps (shard INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE awaited (id TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE early (
    number INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    key TEXT NOT NULL,
    headers BLOB NOT NULL,
    value BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE TABLE foreign_works (partition INTEGER NOT NULL, offset INTEGER NOT NULL, PRIMARY KEY (partition, offset))
WITHOUT ROWID;
"""
_EARLY: Final = (
    "SELECT topic, partition, offset, number, key, headers, value, checksum FROM early ORDER BY number"
)
_TOPICS: Final = (topics.WORKS, topics.REJECTIONS)
"""Topics whose records take effect only if a step declares them as outputs."""

_decode_headers = msgspec.json.Decoder(dict[str, str]).decode


class ShardSteps(Struct):
    """The chain of a shard's steps; and number, time, release and input offsets (``ends``) of the last valid step."""

    chain: Chain
    at_number: int = 0
    time_ms: int = 0
    release: str = ""
    ends: dict[str, int] = {}


decode: Final = msgspec.json.Decoder(ShardSteps).decode


class Steps:
    """Decides which decisions are in effect, and which works and rejections are outputs of a valid step."""

    def __init__(self, rows: Rows) -> None:
        self._shards = {shard: ShardSteps(Chain(shard)) for shard in range(topics.SHARDS)}
        shard: int
        body: bytes
        for shard, body in rows.select("SELECT shard, body FROM steps"):
            self._shards[shard] = decode(body)
        self._outputs = Outputs(_TOPICS, {shard: steps.chain for shard, steps in self._shards.items()})
        self._outputs.awaited = dict(rows.select("SELECT id, mark FROM awaited ORDER BY id"))
        for topic, partition, offset, number, key, headers, value, checksum in rows.select(_EARLY):
            known = _decode_headers(headers)
            self._outputs.keep(StoredRecord(topic, partition, offset, number, key, known, value, checksum))
        self._changed: set[int] = set()
        self._declared: list[str] = []
        self._written = set(self._outputs.awaited)
        self._taken: list[str] = []
        self._kept: dict[int, StoredRecord | None] = {}
        self._foreign: dict[tuple[int, int], bool] = {}

    def take(self, record: StoredRecord, data: shapes.Event) -> bool:
        """Fold the next decision of the record's shard; return whether it is in effect."""
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
            self._declared += self._outputs.expect(record.partition)
        return counts

    def take_output(self, record: StoredRecord) -> Judgement:
        """Judge the next record of works or rejections; keep a record that arrives before its step."""
        judgement = self._outputs.judge(record)
        if judgement is Judgement.EARLY:
            self._kept[record.number] = record
            for evicted in self._outputs.keep(record):
                self._kept[evicted.number] = None
        elif judgement is Judgement.VALID and (output := record.headers["ce_id"]) in self._written:
            self._taken.append(output)
        if record.topic == topics.WORKS and judgement is not Judgement.VALID:
            self._foreign[record.partition, record.offset] = True
        return judgement

    def take_early_outputs(self, shard: int) -> list[StoredRecord]:
        """Return the records that arrived before the shard's last valid step, which declares them as outputs."""
        outputs: list[StoredRecord] = []
        for record in self._outputs.take_early(shard):
            self._kept[record.number] = None
            if self._outputs.judge(record) is Judgement.VALID:
                outputs.append(record)
                if record.topic == topics.WORKS:
                    self._foreign[record.partition, record.offset] = False
        return outputs

    def time_ms(self, shard: int) -> int:
        """Return the time of the shard's last step in milliseconds since 1970; invalid steps are ignored."""
        return self._shards[shard].time_ms

    def flush(self, rows: Rows) -> None:
        changed: list[Row] = [(shard, canonical_json(self._shards[shard])) for shard in sorted(self._changed)]
        rows.write("INSERT OR REPLACE INTO steps VALUES (?, ?)", changed)
        self._changed = set()
        self._flush_awaited(rows)
        if self._kept:
            early = [(number, record) for number, record in self._kept.items() if record is not None]
            rows.write("DELETE FROM early WHERE number = ?", [(number,) for number in self._kept])
            rows.write(
                "INSERT INTO early VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [_row(*record) for record in early]
            )
            self._kept = {}
        if self._foreign:
            foreign = [where for where, is_foreign in self._foreign.items() if is_foreign]
            rows.write("DELETE FROM foreign_works WHERE partition = ? AND offset = ?", list(self._foreign))
            rows.write("INSERT INTO foreign_works VALUES (?, ?)", foreign)
            self._foreign = {}

    def _flush_awaited(self, rows: Rows) -> None:
        """Write the outputs that are still expected at the end of a batch.

        Most outputs follow their step within the same batch and never reach the table.
        """
        awaited = self._outputs.awaited
        new = [output for output in self._declared if output in awaited]
        if self._taken:
            rows.write("DELETE FROM awaited WHERE id = ?", [(output,) for output in self._taken])
            self._written.difference_update(self._taken)
        if new:
            rows.write("INSERT INTO awaited VALUES (?, ?)", [(output, awaited[output]) for output in new])
            self._written.update(new)
        self._declared, self._taken = [], []


def foreign_works(rows: Rows, partition: int, first: int, last: int) -> frozenset[int]:
    """Return the offsets, from ``first`` to ``last`` inclusive, of works that no step has declared so far."""
    statement = "SELECT offset FROM foreign_works WHERE partition = ? AND offset BETWEEN ? AND ?"
    return frozenset(offset for (offset,) in rows.select(statement, (partition, first, last)))


def _row(number: int, record: StoredRecord) -> Row:
    headers = records.headers_json(record.headers)
    position = (number, record.topic, record.partition, record.offset)
    return (*position, record.key, headers, record.value, record.checksum)
