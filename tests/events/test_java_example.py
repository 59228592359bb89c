"""The Java producer writes records that a fold accepts, and reads the decisions they cause."""

import json
import uuid
from pathlib import Path
from typing import Final

import pytest

from events import clusters, codec, decisions, records, rejections, shapes, topics
from events.records import Envelope
from tests.brokers import clients
from tests.builders import log_records
from tests.events import java_example

pytestmark = pytest.mark.slow

DECIDED: Final = decisions.ScheduleDecided(
    key="default/web-deployment",
    generation=1,
    trigger="Taint",
    mode="Steady",
    clusters=(shapes.TargetCluster(name="member2", replicas=3),),
)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return java_example.compiled(tmp_path_factory.mktemp("classes"))


@pytest.fixture
async def prefix(kafka: str) -> str:
    own = f"{uuid.uuid4()}."
    await clients.create_log(kafka, own)
    return own


async def append_decision(
    servers: str, prefix: str, data: shapes.Event, partition: int, *, story: str = "", cause: str = ""
) -> None:
    """Append an event as the engine does because of an input with this id, at this position."""
    head = Envelope(
        id="7-1-1-1", source="/reballast/shards/7", type="", correlationid=story, causationid=cause
    )
    record = codec.encode(data, head, partition=partition, key="7")
    await clients.append(
        servers, prefix + record.topic, partition, record.key.encode(), record.value, record.headers
    )


async def test_java_example_taints_a_cluster_and_prints_the_decision(
    kafka: str, prefix: str, classes: Path
) -> None:
    with java_example.TaintCluster(classes, kafka, prefix, event_id="t-1") as program:
        assert program.line() == f"said {prefix}clusters/0/0 t-1"
        (seen,) = await clients.read(kafka, f"{prefix}clusters", 0, 1)
        await append_decision(kafka, prefix, DECIDED, 3, story="another-story")
        await append_decision(kafka, prefix, DECIDED, 7, story="t-1")
        word, location, data = program.line().split(" ", 2)
        assert (word, location) == ("decided", f"{prefix}decisions/7/0")
        assert json.loads(data) == json.loads(codec.encode_data(DECIDED))
        assert (program.line(), program.end()) == ("", 0)
    partition = log_records.Partition(topics.CLUSTERS)
    partition.taken(clusters.ClusterJoined(name="member1"))
    verdict = partition.take(_record(seen))
    taint = clusters.Taint(key="maintenance", effect="NoExecute")
    assert getattr(verdict, "data", verdict) == clusters.ClusterTainted(name="member1", taint=taint)


async def test_java_example_prints_the_refusal_of_its_taint(kafka: str, prefix: str, classes: Path) -> None:
    with java_example.TaintCluster(classes, kafka, prefix, event_id="t-2", effect="Never") as program:
        assert program.line() == f"said {prefix}clusters/0/0 t-2"
        (seen,) = await clients.read(kafka, f"{prefix}clusters", 0, 1)
        partition = log_records.Partition(topics.CLUSTERS)
        partition.taken(clusters.ClusterJoined(name="member1"))
        verdict = partition.take(_record(seen))
        assert log_records.words(verdict).startswith("refused: taint.effect: ")
        refused = rejections.InputRejected(
            verdict="refused",
            field="taint.effect",
            reason="…",
            topic="clusters",
            key="member1",
            event_id="t-2",
        )
        await append_decision(kafka, prefix, refused, 0, cause="clusters/0/0")
        assert program.line().startswith(f"rejected {prefix}rejections/0/0 ")
        assert program.end() == 1


def test_java_example_compiles_without_a_jdk(tmp_path: Path) -> None:
    assert [path.name for path in java_example.compiled(tmp_path, with_jdk=False).iterdir()] == [
        "TaintCluster.class"
    ]


def _record(seen: clients.ReceivedRecord) -> records.Record:
    return records.record(topics.CLUSTERS, seen.partition, seen.key.decode(), seen.headers, seen.value)
