"""Descriptions of types and fields for ``kubectl explain``.

Only the Karmada groups and Reballast's own have them; Kubernetes' kinds are served without descriptions.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from events.json_values import object_at
from events.validation import kind_schemas


class Meaning(Struct, frozen=True):
    """Description of a type and, by name, of its fields."""

    text: str = ""
    fields: Mapping[str, str] = {}


_NOTHING: Final = Meaning()


@cache
def of(name: str) -> Meaning:
    """Return the description of a type; empty if there is none."""
    written = kind_schemas.types().get(name, {})
    if "description" not in written:
        return _NOTHING
    fields = object_at(written, "properties")
    return Meaning(
        str(written["description"]),
        {field: str(object_at(each)["description"]) for field, each in fields.items()},
    )
