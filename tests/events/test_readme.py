"""The records in the package's README are valid, and equal in all modes."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from events import catalogue, keys, limits, records, topics
from events.validation import manifests, verdicts

TEXT: Final = (Path(__file__).parents[2] / "events" / "README.md").read_text()
KEY: Final = "default/nginx-deployment"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def binary() -> records.Record:
    head, _, value = blocks("")[0].strip().partition("\n\n")
    headers = dict(line.split(": ", 1) for line in head.splitlines())
    return at(headers, value.encode())


def structured() -> records.Record:
    return at({"content-type": "application/cloudevents+json"}, blocks("json")[0].encode())


def console() -> records.Record:
    line = next(line for line in blocks("console")[0].splitlines() if line.startswith("ce_"))
    head, key, value = line.split("\t")
    assert key == KEY
    return at(dict(pair.split(":", 1) for pair in head.split(",")), value.encode())


def at(headers: dict[str, str], value: bytes) -> records.Record:
    return records.record("specs", keys.partition_of(KEY, topics.SHARDS), KEY, headers, value)


def taken(record: records.Record) -> verdicts.Taken:
    fold = verdicts.PartitionFold(verdicts.PartitionState(record.topic, record.partition), manifests.check)
    verdict = fold.take(records.stored(record, 0, 1))
    assert isinstance(verdict, verdicts.Taken), verdict
    return verdict


@pytest.mark.parametrize(
    "record", [binary(), structured(), console()], ids=["binary", "structured", "console"]
)
def test_example_record_is_accepted(record: records.Record) -> None:
    verdict = taken(record)
    assert verdict.head is not None
    assert verdict.head.uid == taken(binary()).head.uid  # pyright: ignore[reportOptionalMemberAccess]
    assert verdict.manifest == taken(binary()).manifest


def test_documented_topics_equal_those_of_the_log() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", TEXT, re.MULTILINE)
    assert {name: int(partitions) for name, partitions in rows} == {
        name: topic.partitions for name, topic in topics.TOPICS.items()
    }
    assert f"falls on partition {binary().partition}." in TEXT


def test_documented_limits_equal_those_of_the_code() -> None:
    assert (limits.OBJECT_BYTES_MAX, limits.RECORD_BYTES_MAX) == (2**20, 2 * 2**20)
    assert (limits.HEADER_BYTES_MAX, limits.KEY_BYTES_MAX, limits.DEPTH_MAX) == (16 * 1024, 1024, 64)
    for number in (limits.CLUSTERS_MAX, limits.REPLICAS_MAX, limits.RECENT_IDS - 1):
        assert f"{number:,}" in TEXT.replace("\n", " ")


def test_type_of_the_example_is_in_the_catalogue() -> None:
    assert json.loads(blocks("json")[0])["type"] in catalogue.BY_TYPE
