"""Response types of the queries, as the OpenAPI document describes them; a record of the log is an ``Entry``."""

import base64

import msgspec
from msgspec import Struct

from events import codec, tracing
from events.json_values import DECODING_ERRORS, Json
from events.records import StoredRecord


class Entry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One record. ``content`` is its data in base64 if they are not JSON; ``fault`` is the error if decoding failed.

    ``cause`` is the causation id: the position of the record that led to this one. ``story`` is the correlation id,
    which all records of a chain of causes share. ``user`` is the user whose request wrote the record. ``trace`` is the
    record's ``traceparent``, ``plan`` the id of the plan whose change caused the record.
    """

    number: int
    position: str
    key: str
    type: str = ""
    id: str = ""
    source: str = ""
    time: str = ""
    subject: str = ""
    cause: str = ""
    story: str = ""
    user: str = ""
    trace: str = ""
    plan: str = ""
    fault: str = ""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    content: str = ""


def entry(record: StoredRecord) -> Entry:
    """Convert a record to its JSON form, also a malformed one or one of an unknown type."""
    number, position, key = record.number, str(record.position), record.key
    data, content = _data(record.value)
    decoded = codec.decode(record)
    if isinstance(decoded, codec.Malformed):
        fault = f"{decoded.field}: {decoded.reason}"
        return Entry(number=number, position=position, key=key, fault=fault, data=data, content=content)
    head = decoded.envelope
    return Entry(
        number=number,
        position=position,
        key=key,
        type=head.type,
        id=head.id,
        source=head.source,
        time=head.time,
        subject=head.subject,
        cause=head.causationid,
        story=head.correlationid,
        user=head.authid,
        trace=head.traceparent,
        plan=tracing.plan_of(head.trace),
        fault="" if isinstance(decoded, codec.Decoded) else "unknown event type in this release",
        data=data,
        content=content,
    )


def _data(value: bytes) -> tuple[msgspec.Raw | msgspec.UnsetType, str]:
    try:
        msgspec.json.decode(value)
    except DECODING_ERRORS:
        return msgspec.UNSET, base64.b64encode(value).decode()
    return msgspec.Raw(value), ""


class Listing(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"continue_": "continue"}):
    """One page of objects; ``continue`` is set while there are more."""

    items: list[Json]
    continue_: str = ""


class Entries(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Records of the log; ``after`` is the number to continue from, 0 at the end."""

    items: list[Entry]
    after: int = 0


class InputLag(Struct, frozen=True, kw_only=True):
    """How far a shard has processed an input partition, as offsets.

    ``end`` is the end of the partition, ``taken`` the offset up to which steps have read it, ``waiting`` the
    difference.
    """

    topic: str
    partition: int
    end: int
    taken: int
    waiting: int


class ShardLag(Struct, frozen=True, kw_only=True, rename="camel"):
    """Progress of one shard: its last step, with its time and owner's term, and the lag of each input partition.

    ``ignored`` is the number of steps without effect, written by fenced owners.
    """

    shard: int
    step: int
    term: int
    time: str
    ignored: int
    inputs: list[InputLag]


class Lag(Struct, frozen=True, kw_only=True, rename="camel"):
    """Numbers of records by which the views (``behind``) and the shards are behind the log."""

    last_number: int
    folded: int
    behind: int
    shards: list[ShardLag]


class Counts(Struct, frozen=True, kw_only=True):
    """Numbers of records by event type and effect."""

    counts: dict[str, int]


class Moment(Struct, frozen=True, kw_only=True):
    """Number and time of the last record up to an instant, a number or a position of the log."""

    number: int
    time: str


class Anything(Struct, frozen=True):
    """A JSON object; its fields depend on its kind."""


encode = msgspec.json.Encoder().encode
