"""Response types of the queries, as the OpenAPI document describes them."""

import msgspec
from msgspec import Struct

from engine.http.query.record_json import Entry
from events.json_values import Json


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
