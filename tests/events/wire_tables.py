"""The generated tables of ``events/WIRE.md``.

``python -m tests.events.wire_tables`` writes them into the document; a test compares.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from events import catalogue, clusters, codec, keys, limits, records, shapes, topics
from events.client import statements
from events.validation import verdicts
from tests.builders import inputs, log_records
from tests.golden.samples import table
from tests.tidy import trees

DOCUMENT: Final = trees.ROOT / "events/WIRE.md"

_TABLE: Final = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SIGN: Final = 2**31
_REASON_CHARS_MAX: Final = 90


def written(text: str) -> str:
    """Return the document with up-to-date tables."""
    return _TABLE.sub(lambda match: f"{match[1]}\n{_TABLES[match[2]]()}\n{match[3]}", text)


def rights() -> list[str]:
    """Return the arguments of the commands that the document lists for access control."""
    block = re.search(r"<!-- rights -->\n```console\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert block is not None
    return [line.removeprefix("kafka-acls.sh ") for line in block[1].splitlines()]


def _rows(head: tuple[str, ...], *rows: tuple[object, ...]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def _topics() -> str:
    return _rows(
        ("topic", "partitions", "key", "written by", "content"),
        *(
            (
                f"`{topics.PREFIX}{topic.name}`",
                topic.partitions,
                topic.key,
                "you, and the engine's write APIs" if topic.name in statements.INPUT_TOPICS else "the engine",
                topic.carries,
            )
            for topic in topics.TOPICS.values()
        ),
    )


def _types() -> str:
    return _rows(
        ("topic", "`ce_type`", "data (required fields in bold)", "meaning"),
        *(
            (f"`{entry.topic}`", f"`{entry.type}`", _fields(entry.struct), _meaning(entry.struct))
            for entry in catalogue.EVENT_TYPES
            if entry.topic in statements.INPUT_TOPICS
        ),
    )


def _fields(struct: type[shapes.Event]) -> str:
    return ", ".join(
        f"**`{field.encode_name}`**" if field.required else f"`{field.encode_name}`"
        for field in msgspec.structs.fields(struct)
    )


def _meaning(struct: type[shapes.Event]) -> str:
    return (struct.__doc__ or "").partition("\n")[0].replace("``", "`")


def _positions() -> str:
    objects = (
        ("Deployment `nginx` in `default`", topics.SPECS, keys.binding_key("Deployment", "default", "nginx")),
        ("ClusterRole `system:view`", topics.SPECS, keys.binding_key("ClusterRole", "", "system:view")),
        ("WorkloadRebalancer `nightly`", topics.SPECS, keys.rebalancer_key("nightly")),
        (
            "PropagationPolicy `web` in `default`",
            topics.POLICIES,
            keys.object_key("PropagationPolicy", "default", "web"),
        ),
        ("Namespace `shop`", topics.POLICIES, keys.object_key("Namespace", "", "shop")),
        ("cluster `member1`", topics.CLUSTERS, "member1"),
        ("report of `member1` on that Deployment", topics.HEALTH, "default/nginx-deployment"),
    )
    return _rows(
        ("record about", "topic", "key", "partition"),
        *(
            (of, f"`{topic}`", f"`{key}`", keys.partition_of(key, topics.TOPICS[topic].partitions))
            for of, topic, key in objects
        ),
    )


def _hashes() -> str:
    texts = ("21", "foobar", "abc", "default/nginx-deployment", "café/müsli-deployment")
    return _rows(
        ("key", "murmur2, as a signed number", f"partition of {topics.SHARDS}"),
        *((f"`{text}`", _signed(text), keys.partition_of(text, topics.SHARDS)) for text in texts),
    )


def _signed(text: str) -> int:
    value = keys.murmur2(text.encode())
    return value - 2 * _SIGN if value >= _SIGN else value


def _limits() -> str:
    return _rows(
        ("limit of", "at most"),
        ("the value of a record", f"{limits.RECORD_BYTES_MAX:,} bytes"),
        ("an object in a value (`manifest`)", f"{limits.OBJECT_BYTES_MAX:,} bytes"),
        ("a key", f"{limits.KEY_BYTES_MAX:,} bytes"),
        ("all headers of a record, as JSON", f"{limits.HEADER_BYTES_MAX:,} bytes"),
        ("nesting in an object", f"{limits.DEPTH_MAX} levels"),
        ("member clusters", f"{limits.CLUSTERS_MAX:,}"),
        ("replicas of a workload", f"{limits.REPLICAS_MAX:,}"),
        (
            "distance to an event for its repetition to be recognized",
            f"{limits.RECENT_IDS - 1:,} offsets of the partition",
        ),
    )


def _refusals() -> str:
    return _rows(("a record that", "verdict", "`field`", "`reason`"), *map(_judged, _BAD.items()))


def _judged(case: tuple[str, records.Record]) -> tuple[str, str, str, str]:
    """Return the verdict on a record after a join of member1 and a taint with the id ``t-1``."""
    words, bad = case
    partition = log_records.Partition(topics.CLUSTERS)
    for record in (_record(clusters.ClusterJoined(name="member1"), "j-1"), _record(_TAINTED, "t-1")):
        assert isinstance(partition.take(record), verdicts.Taken)
    match partition.take(bad):
        case verdicts.Refused(verdict=verdict, field=field, reason=reason):
            short = reason if len(reason) <= _REASON_CHARS_MAX else f"{reason[:_REASON_CHARS_MAX]}…"
            return words, verdict, f"`{field}`", short.replace("|", "\\|")
        case verdicts.Skipped():
            return words, "none: skipped and counted", "", ""
        case verdicts.Taken():
            return words, "taken", "", ""


def _record(
    data: shapes.Event,
    event_id: str = "t-2",
    *,
    key: str = "member1",
    without: str = "",
    headers: Mapping[str, str] | None = None,
) -> records.Record:
    """Return a record in the topic of clusters."""
    head = records.to_headers(
        records.Envelope(id=event_id, source="/pipelines/shop", type=data.event_type.type)
    ) | dict(headers or {})
    head.pop(without, None)
    return records.record(topics.CLUSTERS, 0, key, head, codec.encode_data(data))


def _with_value(value: bytes) -> records.Record:
    good = _record(_TAINTED)
    return records.record(good.topic, good.partition, good.key, good.headers, value)


_TAINTED: Final = clusters.ClusterTainted(
    name="member1", taint=clusters.Taint(key="maintenance", effect="NoExecute")
)
_WRONG_EFFECT: Final = clusters.ClusterTainted(name="member1", taint=clusters.Taint(key="k", effect="Never"))
_LATE: Final = clusters.ClusterTainted(name="member1", taint=_TAINTED.taint, expects=1)
_DECIDED: Final = table.SAMPLES["io.reballast.schedule-decided.v1"]
_TEMPLATE: Final = inputs.deployment("foo", 3)

_BAD: Final[dict[str, records.Record]] = {
    "is not JSON, or is truncated": _with_value(b'{"name":"member1"'),
    "has no value, like a tombstone of a compacted topic": _with_value(b""),
    "has no value for a required field": _with_value(b'{"name":"member1"}'),
    "has a field of a wrong type": _with_value(b'{"name":7,"taint":{"key":"k","effect":"NoExecute"}}'),
    "has a value that the field does not permit": _record(_WRONG_EFFECT),
    "is too large": _with_value(b" " * (limits.RECORD_BYTES_MAX + 1)),
    "is nested too deeply": _with_value(b"[" * 100 + b"]" * 100),
    "has headers that are too large": _record(
        _TAINTED, headers={"ce_subject": "x" * limits.HEADER_BYTES_MAX}
    ),
    "has no `ce_id`": _record(_TAINTED, without="ce_id"),
    "has no `ce_specversion`": _record(_TAINTED, without="ce_specversion"),
    "has a `ce_time` without a time zone": _record(_TAINTED, headers={"ce_time": "2024-05-25T09:49:51"}),
    "has no key, or the key of another object": _record(_TAINTED, key="member2"),
    "belongs to another topic": _record(_TEMPLATE, key="default/foo-deployment"),
    "has the type of a decision": _record(_DECIDED),
    "repeats `ce_source` and `ce_id`": _record(_TAINTED, "t-1"),
    "expects an older version of the object (`expects`)": _record(_LATE),
    "concerns a cluster that is not a member": _record(
        clusters.ClusterUntainted(name="member9", key="k"), key="member9"
    ),
    "has a type or version that this release does not know": _record(
        _TAINTED, headers={"ce_type": "io.reballast.cluster-tainted.v9"}
    ),
}

_TABLES: Final[dict[str, Callable[[], str]]] = {
    "topics": _topics,
    "types": _types,
    "places": _positions,
    "hashes": _hashes,
    "limits": _limits,
    "refusals": _refusals,
}


def main(document: Path = DOCUMENT) -> None:
    """Write the tables into the document."""
    document.write_text(written(document.read_text()))


if __name__ == "__main__":
    main()
