"""The samples of all types, with the key, partition and envelope of their records."""

import hashlib
from typing import Final

import msgspec

from events import keys, rejections, shapes, topics, works
from events.kube_objects import read_head
from events.records import Envelope
from events.validation import verdicts
from tests.golden.samples import observations, quotas
from tests.golden.samples.clusters import CLUSTERS
from tests.golden.samples.decisions import DECISIONS
from tests.golden.samples.inputs import HEALTH, POLICIES, SPECS
from tests.golden.samples.links import LINKS
from tests.golden.samples.values import KEY
from tests.golden.samples.works import WORKS

_OTHERS: Final[tuple[shapes.Event, ...]] = (
    *observations.SAMPLES,
    *quotas.SAMPLES,
    rejections.InputRejected(
        verdict="late",
        reason="written for version 1, but version 2 stands",
        field="expects",
        topic="specs",
        partition=3,
        offset=8,
        key=KEY,
        source="/pipelines/shop",
        event_id="42",
        content="{}",
    ),
)
SAMPLES: Final[dict[str, shapes.Event]] = {
    data.event_type.type: data
    for data in (*SPECS, *POLICIES, *CLUSTERS, *HEALTH, *DECISIONS, *LINKS, *WORKS, *_OTHERS)
}
"""By CloudEvents type."""


def place_of(data: shapes.Event) -> tuple[str, int]:
    """Return key and partition of a sample."""
    topic = topics.TOPICS[data.event_type.topic]
    match data:
        case works.WorkApplied() | works.WorkRemoved() | works.WorkSuspended():
            key = data.cluster
        case rejections.InputRejected():
            key = data.topic
        case _ if topic.name == topics.OBSERVATIONS:
            key = data.record_key
        case _ if topic.name == topics.DECISIONS:
            shard = keys.shard_of(KEY)
            return str(shard), shard
        case _:
            manifest = getattr(data, "manifest", None)
            key = verdicts.key_of(data, read_head(manifest) if isinstance(manifest, msgspec.Raw) else None)
    return key, keys.partition_of(key, topic.partitions)


def envelope_of(event_type: str) -> Envelope:
    """Return an envelope with a value in every attribute of the first release."""
    trace = hashlib.sha256(event_type.encode()).hexdigest()
    return Envelope(
        id=f"sample-{event_type}",
        source="/samples",
        type=event_type,
        subject=KEY,
        time="2024-05-25T09:49:51.120Z",
        dataschema=f"urn:reballast:{event_type}",
        traceparent=f"00-{trace[:32]}-{trace[32:48]}-01",
        correlationid="story-1",
        causationid="specs/3/8",
    )
