"""Storage format of the embedded log: repeated parts are compressed, and records are read back unchanged."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bench import inputs
from engine.log import compact, sqlite
from events import records, topics
from tests.golden import logs

DEPLOYMENT = inputs.deployment(0)
OWN = records.record(
    DEPLOYMENT.topic,
    DEPLOYMENT.partition,
    DEPLOYMENT.key,
    {
        **DEPLOYMENT.headers,
        "ce_id": "2-1-100-6",
        "ce_correlationid": "01d72e75-730c-4da5-b80d-7a70854b22cf",
        "ce_causationid": "specs/2/36",
    },
    DEPLOYMENT.value,
)
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["\0", "\1\2", '","ce_time":"20', '{"ce_specversion":"1.0","ce_id":"', "\\", '"']
)
UNUSUAL = [
    {},
    {"ce_id": "no version"},
    {**OWN.headers, "ce_source": "/elsewhere", "ce_type": "com.example.v2"},
    {**OWN.headers, "ce_id": "\x00\x01\x07\x1f", "ce_subject": "grüße \U0001f980"},
    {**OWN.headers, "content-type": 'application/json; x="\\"'},
    dict(reversed(list(OWN.headers.items()))),
]


def stored_headers(directory: Path) -> list[bytes]:
    with closing(sqlite3.connect(directory / "log.sqlite")) as connection:
        return [headers for (headers,) in connection.execute("SELECT headers FROM records ORDER BY number")]


def value_bytes(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "log.sqlite")) as connection:
        (size,) = connection.execute("SELECT sum(length(value)) FROM records").fetchone()
    return size


def format_of(directory: Path) -> str:
    with closing(sqlite3.connect(directory / "log.sqlite")) as connection:
        (name,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    return name


async def test_headers_of_events_take_less_than_half_of_their_json(tmp_path: Path) -> None:
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        await log.append([OWN])
    (stored,) = await asyncio.to_thread(stored_headers, tmp_path)
    assert len(stored) < len(OWN.headers_json) / 2


@pytest.mark.parametrize("headers", UNUSUAL)
async def test_unusual_headers_are_read_unchanged(tmp_path: Path, headers: Mapping[str, str]) -> None:
    written = records.record(topics.SPECS, 0, "k", headers, b"v")
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        stored = await log.append([OWN, written, OWN])
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        assert await log.read_all(0, 10) == stored


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(TEXTS, TEXTS, max_size=3), min_size=1, max_size=3))
def test_any_headers_round_trip(batch: list[dict[str, str]]) -> None:
    plain = [records.headers_json(headers) for headers in batch]
    assert compact.unpack(compact.pack(plain)) == plain


def test_zero_byte_in_one_record_does_not_shift_the_headers_of_others() -> None:
    first, second = compact.pack([OWN.headers_json, b"{}"])
    assert compact.unpack([first[:9] + b"\0" + first[9:], second])[1] == b"{}"


MANIFEST = (
    b'{"manifest":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{'
    b'"containers":[{"name":"main","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],'
    b'"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},'
    b'"terminationGracePeriodSeconds":30}}}}}'
)


@pytest.mark.parametrize("rest", [b"", b"\n\t ", b"\x01", b"\x08\xff\0"], ids=repr)
@pytest.mark.parametrize("times", [1, 3, 100])
async def test_values_of_any_bytes_are_read_unchanged(tmp_path: Path, rest: bytes, times: int) -> None:
    written = records.record(topics.SPECS, 0, "k", OWN.headers, MANIFEST * times + rest)
    unusual = records.record(topics.SPECS, 0, "k", {}, MANIFEST * times + rest)
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        stored = await log.append([OWN, written, unusual])
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        assert await log.read_all(0, 10) == stored


async def test_default_fields_of_manifests_are_compressed(tmp_path: Path) -> None:
    async with aclosing(await sqlite.SqliteLog.open(tmp_path)) as log:
        await log.append([records.record(topics.SPECS, 0, "k", OWN.headers, MANIFEST * 3)])
    assert await asyncio.to_thread(value_bytes, tmp_path) < len(MANIFEST * 3) / 2


async def test_log_of_a_former_release_is_read_and_appended_to_without_being_rewritten(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    recorded = next(log for log in logs.recorded() if "0.4.0" in log.parts)
    await asyncio.to_thread(logs.unpack, recorded, data)
    before = await asyncio.to_thread(stored_headers, data)
    assert await asyncio.to_thread(format_of, data) == "reballast-log-1"
    async with aclosing(await sqlite.SqliteLog.open(data)) as log:
        old = await log.read_all(0, len(before))
        (new,) = await log.append([OWN])
    async with aclosing(await sqlite.SqliteLog.open(data)) as log:
        assert await log.read_all(0, len(before) + 1) == [*old, new]
    after = await asyncio.to_thread(stored_headers, data)
    assert after[:-1] == before
    assert after[0].startswith(b"{")
    assert len(after[-1]) < len(OWN.headers_json) / 2
    assert await asyncio.to_thread(format_of, data) == "reballast-log-2"
