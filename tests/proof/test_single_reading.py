"""The one reading of a proof: each record once, and on SQLite only those that the proved shards need."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from engine.log import compact, port, sqlite_reading, sqlite_share
from engine.proof import single_reading, verification
from engine.proof.verification import Report, Scope
from events import chain, ids, records, topics
from events.records import StoredRecord
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.proof import logs

HALVES = [tuple(range(start, topics.SHARDS, 2)) for start in (0, 1)]
Tamper = Callable[[sqlite3.Connection, StoredRecord], None]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[StoredRecord]]:
    """The directory of a closed log, and its records."""
    directory = tmp_path_factory.mktemp("recording")
    return directory, asyncio.run(_record(directory))


@pytest.fixture
def history(recording: tuple[Path, list[StoredRecord]], tmp_path: Path) -> list[StoredRecord]:
    """The records of a log, a copy of which is in ``tmp_path``."""
    directory, stored = recording
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    return stored


async def _record(directory: Path) -> list[StoredRecord]:
    async with logs.opened(directory) as log:
        story = Story(log)
        await logs.play(story)
        await story.submit(*(deployment(f"web{index}", 2) for index in range(20)))
        headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/clients", "ce_type": "x"}
        foreign = [(topic, shard) for topic in (topics.WORKS, topics.SPECS) for shard in range(topics.SHARDS)]
        await log.append(
            [
                records.record(topic, partition, "key", headers, b"{}")
                for topic, partition in ((topics.OBSERVATIONS, 0), *foreign)
            ]
        )
        await story.settle()
        return await logs.all_records(log)


async def proved(directory: Path) -> tuple[Report, Report]:
    """Return the report of a proof that reads all records, and the merged report of proofs of half the shards each."""
    async with logs.opened(directory) as log:
        whole = await verification.verify(log)
    parts = [await asyncio.to_thread(_part, directory, half) for half in HALVES]
    return whole, verification.merged(parts)


def _part(directory: Path, shards: tuple[int, ...]) -> Report:
    return asyncio.run(_verified(directory, shards))


async def _verified(directory: Path, shards: tuple[int, ...]) -> Report:
    async with aclosing(sqlite_reading.SqliteReader(directory)) as log:
        return await verification.verify(log, Scope(shards=shards))


def flipped(connection: sqlite3.Connection, record: StoredRecord) -> None:
    value = record.value[:-1] + bytes([record.value[-1] ^ 1])
    connection.execute("UPDATE records SET value = ? WHERE number = ?", (value, record.number))


def renamed(connection: sqlite3.Connection, record: StoredRecord) -> None:
    """Let a record claim to be the output of another step, with a right checksum."""
    shard, term, step = ids.step_of(record.headers["ce_id"])
    other = ids.output_id((shard + 1) % topics.SHARDS, term, step, 99)
    _write_headers(connection, record, {**record.headers, "ce_id": other})


def escaped(connection: sqlite3.Connection, record: StoredRecord) -> None:
    """Write the same headers of a record with a JSON escape, and a right checksum."""
    blob = records.headers_json(record.headers).replace(b'"/reballast/shards/', b'"\\u002freballast/shards/')
    _write(connection, record, blob)


def emptied(connection: sqlite3.Connection, record: StoredRecord) -> None:
    """Let a record name a shard as its source, but have no id."""
    _write_headers(connection, record, {**record.headers, "ce_id": ""})


def _write_headers(connection: sqlite3.Connection, record: StoredRecord, headers: dict[str, str]) -> None:
    _write(connection, record, records.headers_json(headers))


def _write(connection: sqlite3.Connection, record: StoredRecord, blob: bytes) -> None:
    digest = records.checksum(record.topic, record.partition, record.key, blob, record.value)
    (packed,) = compact.pack([blob])
    value = record.value
    connection.execute(
        "UPDATE records SET headers = ?, value = ?, checksum = ? WHERE number = ?",
        (packed, value, digest, record.number),
    )


@pytest.mark.parametrize(
    ("topic", "tamper"),
    [
        *(
            (topic, flipped)
            for topic in (topics.CLUSTERS, *topics.OWN_TOPICS, topics.DECISIONS, topics.WORKS)
        ),
        *((topics.DECISIONS, tamper) for tamper in (renamed, escaped, emptied)),
        *((topics.WORKS, tamper) for tamper in (renamed, escaped, emptied)),
        *((topics.LINKS, tamper) for tamper in (renamed, escaped, emptied)),
    ],
)
async def test_proofs_of_two_halves_find_what_one_proof_finds(
    history: list[StoredRecord], tmp_path: Path, topic: str, tamper: Tamper
) -> None:
    from_engine = [record for record in history if record.headers["ce_source"] != "/clients"]
    record = [output for output in from_engine if output.topic == topic and not chain.may_be_step(output)][-1]
    await asyncio.to_thread(_change, tmp_path, tamper, [record])
    whole, parts = await proved(tmp_path)
    assert sorted(parts.findings, key=str) == sorted(whole.findings, key=str)
    assert sorted(parts.notes, key=str) == sorted(whole.notes, key=str)
    assert whole.findings or whole.notes or tamper is escaped
    # A half passes by records of the other half that are damaged.
    assert whole.records <= parts.records <= len(history)


async def test_halves_check_every_record(history: list[StoredRecord], tmp_path: Path) -> None:
    changed = history[1::2]
    await asyncio.to_thread(_change, tmp_path, flipped, changed)
    _, parts = await proved(tmp_path)
    numbers = {finding.where for finding in parts.findings if finding.kind == "checksum"}
    assert numbers == {f"number {record.number}" for record in changed}


def _change(directory: Path, tamper: Tamper, changed: list[StoredRecord]) -> None:
    connection = sqlite3.connect(directory / "log.sqlite")
    with connection:
        for record in changed:
            tamper(connection, record)
    connection.close()


def test_headers_that_may_decode_to_an_output_of_the_shards_are_kept() -> None:
    share = sqlite_share.Share([3])
    real = {
        "ce_specversion": "1.0",
        "ce_id": "3-1-5-2",
        "ce_source": "/reballast/shards/3",
        "ce_type": "io.reballast.x.v1",
    }
    own = msgspec.json.encode(real)
    other = msgspec.json.encode({**real, "ce_id": "4-1-5-2", "ce_source": "/reballast/shards/4"})
    kept = [
        own,
        other.replace(b'"ce_type"', b'"ce_id":"3-1-5-2","ce_type"'),
        other.replace(b'"4-1', b'"\\u0033-1'),
        other.replace(b'"ce_type":"io.reballast.x.v1"', b'"ce_type":"x","ce_source":"/reballast/shards/3"'),
        other.replace(b"4-1-5-2", b"12-1-5-2"),
        other.replace(b"4-1-5-2", b"none"),
        own.replace(b'"/reballast/shards/3"', b'"\\/reballast\\/shards\\/3"'),
        own.replace(b",", b", "),
    ]
    left_out = [other, msgspec.json.encode({**real, "ce_id": "3-1-5-2", "ce_source": "/clients/web"})]
    assert [share.may_be_output(packed) for packed in compact.pack(kept)] == [True] * len(kept)
    assert [share.may_be_output(packed) for packed in compact.pack(left_out)] == [False, False]


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(("held_max", "read"), [(0, 1), (3, 2), (50, 7)])
async def test_small_reading_proves_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held_max: int, read: int
) -> None:
    usual = await proved(tmp_path)
    monkeypatch.setattr(single_reading, "_HELD_MAX", held_max)
    monkeypatch.setattr(port, "READ_RECORDS", read)
    assert await proved(tmp_path) == usual
    assert usual[0] == usual[1]
    assert usual[0].is_clean
