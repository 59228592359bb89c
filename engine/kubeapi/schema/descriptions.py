"""Descriptions of types and fields for ``kubectl explain``.

Only the Karmada groups and Reballast's own have them; Kubernetes' kinds are served without descriptions.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from engine.kubeapi.schema.descriptions_karmada import DESCRIPTIONS

_HEAD: Final[Mapping[str, str]] = {
    "apiVersion": "The group of the kind, and the version of its form.",
    "kind": "The kind of object.",
    "metadata": "Its name, namespace, labels and annotations, and what the server keeps of it.",
}
"""Descriptions of the fields that all objects have."""

_ONWARD: Final = re.compile(r"\n {4}")


class Meaning(Struct, frozen=True):
    """Description of a type and, by name, of its fields."""

    text: str = ""
    fields: Mapping[str, str] = {}


_NOTHING: Final = Meaning()


def of(name: str) -> Meaning:
    """Return the description of a type of the tables; empty if there is none."""
    return _meanings().get(name, _NOTHING)


@cache
def _meanings() -> Mapping[str, Meaning]:
    found: dict[str, tuple[str, dict[str, str]]] = {}
    fields: dict[str, str] = {}
    for line in _ONWARD.sub(" ", DESCRIPTIONS).strip().splitlines():
        name, _colon, text = line.partition(": ")
        if name.startswith(" "):
            fields[name.strip()] = text
        else:
            fields = dict(_HEAD)
            found[name] = (text, fields)
    return {name: Meaning(text, fields) for name, (text, fields) in found.items()}
