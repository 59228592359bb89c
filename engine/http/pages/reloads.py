"""The part of the live feed that makes an open page reload."""

from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from engine.http.query.routes import PREFIX
from events import catalogue, decisions

_UNSEEN: Final = frozenset({catalogue.BY_STRUCT[decisions.StepTaken].type})
"""Not followed: a step alone changes nothing that a page shows; its outputs are separate records."""


class Feed(Struct, frozen=True):
    """The URL of a feed and the event types to listen for, separated by spaces; empty for none."""

    path: str = ""
    types: str = ""


def follow(topic: str = "", key: str = "") -> Feed:
    """The feed of one topic or one key."""
    types = (entry.type for entry in catalogue.EVENT_TYPES if topic in ("", entry.topic))
    parameters = {name: value for name, value in (("topic", topic), ("key", key)) if value}
    path = f"{PREFIX}/live?{urlencode(parameters)}"
    return Feed(path, " ".join(type_ for type_ in types if type_ not in _UNSEEN))
