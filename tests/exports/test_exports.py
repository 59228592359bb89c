"""A log exported to files, continued, read by other programs, and imported into an empty log with the same bytes."""

import asyncio
import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs]
import pytest
from cloudevents.core.v1.event import CloudEvent

from engine.exports import formats, log_files
from engine.exports.formats import ExportError, Format
from engine.exports.log_files import EVERYTHING, Filters, Manifest
from engine.log import local, port
from engine.proof import verification
from events import records, times, topics
from events.json_values import Json
from events.records import StoredRecord
from tests.builders.inputs import capacity, deployment, joined, policy, quota
from tests.builders.manifests import selector
from tests.deciders.story import Story
from tests.proof import logs


def _silent(_number: int, _count: int) -> None:
    """Show no progress."""


async def exported(
    log: port.NumberedLog, directory: Path, form: Format = "jsonl", filters: Filters = EVERYTHING
) -> Manifest:
    return await log_files.export(log, directory, form, filters, _silent)


async def imported(directory: Path, into: port.NumberedLog | None = None) -> port.NumberedLog:
    log = into or local.MemoryLog()
    await log_files.load(log, directory, _silent)
    return log


async def test_imported_log_has_the_same_bytes_and_is_proved(tmp_path: Path) -> None:
    log = await logs.played()
    await log.append([records.record(topics.SPECS, 0, "no event", {"é": "ü"}, b"\xff\x00 no UTF-8")])
    manifest = await exported(log, tmp_path / "archive")
    assert manifest.number == log.last_number()
    async with logs.opened(tmp_path / "copy") as copy:
        await imported(tmp_path / "archive", copy)
        assert await logs.all_records(copy) == await logs.all_records(log)
        assert (await verification.verify(copy)).steps == (await verification.verify(log)).steps


async def test_later_export_appends_new_records(tmp_path: Path) -> None:
    story = Story()
    await logs.play(story)
    first = await exported(story.log, tmp_path)
    assert await exported(story.log, tmp_path) == first
    await story.submit(deployment("late", 2))
    second = await exported(story.log, tmp_path)
    assert second.files[: len(first.files)] == first.files
    assert second.files[-1].first == first.number + 1
    assert await logs.all_records(await imported(tmp_path)) == await logs.all_records(story.log)


async def test_export_does_not_continue_with_another_log(tmp_path: Path) -> None:
    first, other = Story(), Story()
    await logs.play(first)
    manifest = await exported(first.log, tmp_path)
    await other.submit(deployment("other", 1))
    for _ in range(2):
        with pytest.raises(ExportError, match="another log"):
            await exported(other.log, tmp_path)
        await logs.play(other)
        await logs.play(other)
        assert other.log.last_number() > manifest.number
    assert await asyncio.to_thread(log_files.read_manifest, tmp_path) == manifest
    assert await exported(first.log, tmp_path) == manifest


async def test_interrupted_export_continues_behind_its_last_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await logs.played()
    monkeypatch.setattr(log_files, "_FILE_RECORDS", 10)
    monkeypatch.setattr(port, "READ_RECORDS", 5)
    broken = _Broken(await logs.all_records(log))
    with pytest.raises(port.LogError):
        await exported(broken, tmp_path)
    manifest = await asyncio.to_thread(log_files.read_manifest, tmp_path)
    assert manifest is not None
    assert len(manifest.files) > 1
    (tmp_path / "records-000000000031.jsonl.part").write_bytes(b"half of a file")
    await exported(log, tmp_path)
    assert await logs.all_records(await imported(tmp_path)) == await logs.all_records(log)


class _Broken(local.MemoryLog):
    """A log that cannot be read from number 30 on."""

    def __init__(self, history: list[StoredRecord]) -> None:
        super().__init__()
        self._history = history

    def last_number(self) -> int:
        return len(self._history)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        if after >= 30:
            raise port.LogError("the brokers do not answer")
        return self._history[after : after + limit]


async def test_manifest_has_the_digest_of_each_file_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    manifest = await exported(await logs.played(), tmp_path)
    (file,) = manifest.files
    content = (tmp_path / file.name).read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.bytes)
    (tmp_path / file.name).write_bytes(content.replace(b"member1", b"member9", 1))
    with pytest.raises(ExportError, match="was changed"):
        await imported(tmp_path)


async def test_line_whose_content_was_changed_is_refused_although_the_manifest_fits() -> None:
    history = await logs.all_records(await logs.played())
    line = json.loads(formats.encode_line(history[0]))
    line["value"] = line["value"].replace("member1", "member9")
    with pytest.raises(ExportError, match=r"line 1 .* its checksum differs"):
        formats.read(json.dumps(line).encode())
    with pytest.raises(ExportError, match="line 2 is not a record"):
        formats.read(formats.encode_line(history[0]) + b"\n{}")


async def test_only_a_whole_export_is_imported_and_only_into_an_empty_log(tmp_path: Path) -> None:
    log = await logs.played()
    with pytest.raises(ExportError, match=r"contains no manifest\.json"):
        await imported(tmp_path)
    await exported(log, tmp_path / "part", filters=Filters(topics=("specs",)))
    with pytest.raises(ExportError, match="does not contain all records"):
        await imported(tmp_path / "part")
    with pytest.raises(ExportError, match="other filters"):
        await exported(log, tmp_path / "part")
    await exported(log, tmp_path / "whole")
    with pytest.raises(ExportError, match="the log is not empty"):
        await imported(tmp_path / "whole", log)


async def test_log_with_gaps_is_not_imported(tmp_path: Path) -> None:
    gappy = _Gappy(await logs.all_records(await logs.played()))
    await exported(gappy, tmp_path)
    with pytest.raises(ExportError, match="number 5 is missing"):
        await imported(tmp_path)


class _Gappy(local.MemoryLog):
    """A log without number 5, as numbers on Kafka have gaps."""

    def __init__(self, history: list[StoredRecord]) -> None:
        super().__init__()
        self._history = [record for record in history if record.number != 5]

    def last_number(self) -> int:
        return self._history[-1].number

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        return [record for record in self._history if record.number > after][:limit]


async def test_filters_choose_topics_namespaces_and_times(tmp_path: Path) -> None:
    story = Story()
    await logs.play(story)
    history = await logs.all_records(story.log)
    await exported(story.log, tmp_path / "specs", filters=Filters(topics=("specs", "works")))
    assert {line["topic"] for line in lines(tmp_path / "specs")} == {"specs", "works"}
    await exported(story.log, tmp_path / "default", filters=Filters(namespaces=("default",)))
    keys = {line["headers"].get("ce_subject") or line["key"] for line in lines(tmp_path / "default")}
    assert {"default/web-deployment", "default/big-deployment"} <= keys
    assert all("default/" in key for key in keys)
    nothing = await exported(story.log, tmp_path / "none", filters=Filters(since_ms=story.now_ms + 1_000_000))
    assert lines(tmp_path / "none") == []
    assert nothing.number == len(history), "a later export would read the same records again"
    await exported(story.log, tmp_path / "all", filters=Filters(until_ms=story.now_ms + 1_000_000))
    assert len(lines(tmp_path / "all")) == len(history)


async def test_export_of_another_range_names_the_range_that_continues_it(tmp_path: Path) -> None:
    log = await logs.played()
    since_ms = times.from_text("2026-01-01T00:00:00Z")
    manifest = await exported(log, tmp_path, filters=Filters(since_ms=since_ms))
    with pytest.raises(ExportError, match=r"of the events from 2026-01-01T00:00:00\.000Z on; give these"):
        await exported(log, tmp_path, filters=Filters(since_ms=since_ms + 1))
    assert await exported(log, tmp_path, filters=Filters(since_ms=since_ms)) == manifest


async def test_range_without_a_begin_has_events_from_before_1970(tmp_path: Path) -> None:
    log = local.MemoryLog()
    head = records.Envelope(id="1", source="/clock", type="example.started.v1", time="1969-12-31T23:59:59Z")
    await log.append([records.record(topics.SPECS, 0, "old", records.to_headers(head), b"{}")])
    await log.append([records.record(topics.SPECS, 0, "timeless", {}, b"{}")])
    await exported(log, tmp_path, filters=Filters(until_ms=0))
    assert [line["key"] for line in lines(tmp_path)] == ["old"]


async def test_namespace_selects_its_quotas_and_groups(tmp_path: Path) -> None:
    story = Story()
    affinity: Json = {"workloadAffinity": {"affinity": {"groupByLabelKey": "example.com/team"}}}
    labelled = deployment("web", 1, labels={"example.com/team": "a"})
    await story.submit(joined("member1"), capacity("member1"), policy("p", affinity, selector()))
    await story.submit(quota("all", "1"), labelled)
    await exported(story.log, tmp_path, filters=Filters(namespaces=("default",)))
    types = {line["headers"].get("ce_type") for line in lines(tmp_path)}
    assert {f"io.reballast.{name}-decided.v1" for name in ("quota", "group")} <= types


async def test_cloudevents_are_read_by_another_library(tmp_path: Path) -> None:
    log = await logs.played()
    history = await logs.all_records(log)
    await log.append([records.record(topics.SPECS, 0, "no event", {}, b"\xff")])
    await exported(log, tmp_path, "cloudevents")
    exported_lines = lines(tmp_path)
    assert len(exported_lines) == len(history)
    for line, record in zip(exported_lines, history, strict=True):
        attributes = {name: value for name, value in line.items() if name not in {"data", "time"}}
        event = CloudEvent(attributes, line["data"])
        assert event.get_id() == record.headers["ce_id"]
        assert line["reballastnumber"] == record.number
        assert line["data"] == json.loads(record.value)


@pytest.mark.parametrize(
    ("value", "field", "content"),
    [
        (b'{\n "one": 1\r\n}', "data", {"one": 1}),
        (b"no JSON\n", "data_base64", base64.b64encode(b"no JSON\n").decode()),
        (b'"\xff"', "data_base64", base64.b64encode(b'"\xff"').decode()),
        (b"", "data_base64", ""),
    ],
)
async def test_each_foreign_event_is_one_line_of_json(
    value: bytes, field: str, content: object, tmp_path: Path
) -> None:
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/shop", "ce_type": "shop.sold"}
    log = local.MemoryLog()
    await log.append([records.record(topics.SPECS, 0, "key", headers, value)])
    await exported(log, tmp_path, "cloudevents")
    (line,) = lines(tmp_path)
    assert line[field] == content
    assert {"data", "data_base64"} & set(line) == {field}


async def test_structured_events_have_attributes_too(tmp_path: Path) -> None:
    attributes = {"id": "1", "source": "/shop", "type": "shop.sold", "time": "2026-11-20T10:00:00Z"}
    value = json.dumps({"specversion": "1.0", **attributes, "subject": "shop/web", "data": {}}).encode()
    log = local.MemoryLog()
    await log.append([records.record(topics.SPECS, 0, "key", {"content-type": records.STRUCTURED}, value)])
    at_ms = times.from_text(attributes["time"])
    chosen = Filters(namespaces=("shop",), since_ms=at_ms, until_ms=at_ms + 1)
    await exported(log, tmp_path / "lines", filters=chosen)
    assert [line["key"] for line in lines(tmp_path / "lines")] == ["key"]
    for name, other in (("late", Filters(since_ms=at_ms + 1)), ("early", Filters(until_ms=at_ms))):
        await exported(log, tmp_path / name, filters=other)
        assert lines(tmp_path / name) == []
    manifest = await exported(log, tmp_path / "table", "parquet")
    (row,) = cast("Any", pyarrow.parquet).read_table(tmp_path / "table" / manifest.files[0].name).to_pylist()
    assert {name: row[name] for name in (*attributes, "subject")} == {**attributes, "subject": "shop/web"}


async def test_structured_event_with_line_breaks_is_one_line(tmp_path: Path) -> None:
    value = (
        b'{"specversion": "1.0", "id": "1",\n"source": "/shop", "type": "shop.sold", "data": {\n"one": 1}}'
    )
    log = local.MemoryLog()
    await log.append([records.record(topics.SPECS, 0, "key", {"content-type": records.STRUCTURED}, value)])
    await exported(log, tmp_path, "cloudevents")
    (line,) = lines(tmp_path)
    assert line["data"] == {"one": 1}


async def test_parquet_has_every_record(tmp_path: Path) -> None:
    log = await logs.played()
    manifest = await exported(log, tmp_path, "parquet")
    table = cast("Any", pyarrow.parquet).read_table(tmp_path / manifest.files[0].name)
    rows: list[dict[str, Any]] = table.to_pylist()
    for row, record in zip(rows, await logs.all_records(log), strict=True):
        assert (row["number"], row["topic"], row["offset"]) == (record.number, record.topic, record.offset)
        assert (row["value"], row["checksum"]) == (record.value, record.checksum)
        assert row["type"] == record.headers["ce_type"]
        assert json.loads(row["headers"]) == record.headers


def lines(directory: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(directory.glob("records-*"))
        for line in path.read_bytes().splitlines()
    ]


async def exported_to_small_files(
    log: port.NumberedLog,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    file_bytes: int = 2_000,
    read_records: int = 5,
) -> Manifest:
    monkeypatch.setattr(log_files, "_FILE_BYTES", file_bytes)
    monkeypatch.setattr(port, "READ_RECORDS", read_records)
    return await exported(log, directory)


async def test_export_with_a_changed_file_is_not_imported_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await exported_to_small_files(await logs.played(), tmp_path, monkeypatch)
    assert len(manifest.files) > 1
    with (tmp_path / manifest.files[-1].name).open("ab") as file:
        file.write(b" ")
    log = local.MemoryLog()
    with pytest.raises(ExportError, match="was changed"):
        await imported(tmp_path, log)
    assert log.last_number() == 0


async def test_export_without_its_last_file_is_not_imported_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await exported_to_small_files(await logs.played(), tmp_path, monkeypatch)
    cut = msgspec.structs.replace(manifest, files=manifest.files[:-1])
    (tmp_path / log_files.MANIFEST).write_bytes(msgspec.json.encode(cut))
    log = local.MemoryLog()
    with pytest.raises(ExportError, match=f"number {manifest.files[-1].first} is missing"):
        await imported(tmp_path, log)
    assert log.last_number() == 0


async def test_export_with_a_gap_in_a_later_file_is_not_imported_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gappy = _Gappy(await logs.all_records(await logs.played()))
    manifest = await exported_to_small_files(gappy, tmp_path, monkeypatch, file_bytes=500, read_records=3)
    assert manifest.files[0].last < 5
    log = local.MemoryLog()
    with pytest.raises(ExportError, match="number 5 is missing"):
        await imported(tmp_path, log)
    assert log.last_number() == 0


@pytest.mark.parametrize("form", ["jsonl", "cloudevents", "parquet"])
async def test_file_is_on_disk_before_the_manifest_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    manifest = await exported(await logs.played(), tmp_path, form)
    (file,) = manifest.files
    names = (file.name, log_files.MANIFEST)
    assert synced == [(tmp_path / name).stat().st_ino for name in names]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": "\xff"}', "is not a manifest"),
        (b'{"format": "other", "records": "jsonl", "filters": {}}', "has the format other"),
    ],
)
async def test_manifest_of_another_form_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / log_files.MANIFEST).write_bytes(content)
    with pytest.raises(ExportError, match=reason):
        await imported(tmp_path)


async def test_manifest_counts_the_records_that_are_in_the_files(tmp_path: Path) -> None:
    log = await logs.played()
    await log.append([records.record(topics.SPECS, 0, "no event", {}, b"{}")])
    (file,) = (await exported(log, tmp_path, "cloudevents")).files
    assert file.records == len((tmp_path / file.name).read_bytes().splitlines()) == log.last_number() - 1
