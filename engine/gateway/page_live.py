"""What an open page follows: the part of the live feed after which it looks again."""

from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from engine.gateway.question_routes import PREFIX
from events import catalogue, decisions

_UNSEEN: Final = frozenset({catalogue.BY_STRUCT[decisions.StepTaken].type})
"""A step without outputs changes nothing that a page shows."""


class Feed(Struct, frozen=True):
    """A feed: where it is, and the types of its events, with blanks between; empty for none."""

    path: str = ""
    types: str = ""


def follow(topic: str = "", key: str = "") -> Feed:
    """The events of a topic, or about a key."""
    types = (entry.type for entry in catalogue.EVENT_TYPES if topic in ("", entry.topic))
    wanted = {name: value for name, value in (("topic", topic), ("key", key)) if value}
    path = f"{PREFIX}/live?{urlencode(wanted)}"
    return Feed(path, " ".join(each for each in types if each not in _UNSEEN))
