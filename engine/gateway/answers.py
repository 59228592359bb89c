"""What questions give: the shapes of answers, as the OpenAPI document describes them."""

import msgspec
from msgspec import Struct

from engine.gateway.entries import Entry

Json = dict[str, object]


class Listing(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"continue_": "continue"}):
    """A page of objects; ``continue`` is there while there is more."""

    items: list[Json]
    continue_: str = ""


class Entries(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Records of the log; ``after`` is the number to go on from while there is more."""

    items: list[Entry]
    after: int = 0


class InputLag(Struct, frozen=True, kw_only=True):
    """Records of an input partition that its shard has not decided yet."""

    topic: str
    partition: int
    end: int
    taken: int
    waiting: int


class ShardLag(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the owner of a shard has come."""

    shard: int
    step: int
    term: int
    time: str
    ignored: int
    inputs: list[InputLag]


class Lag(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the views and the shards are behind the log."""

    last_number: int
    folded: int
    behind: int
    shards: list[ShardLag]


class Counts(Struct, frozen=True, kw_only=True):
    """How many records of each sort there were, and how many had no effect."""

    counts: dict[str, int]


class Moment(Struct, frozen=True, kw_only=True):
    """The last record at an instant, a number or a position of the log, and the time of that record."""

    number: int
    time: str


class Anything(Struct, frozen=True):
    """A JSON object; its fields are those of its kind."""


encode = msgspec.json.Encoder().encode
