"""What types and their fields mean, in a few words, for those who ask ``kubectl explain``.

Only the karmada groups and our own have them; what Kubernetes' own kinds mean its documentation tells.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from engine.kube.descriptions_karmada import DESCRIPTIONS

_HEAD: Final[Mapping[str, str]] = {
    "apiVersion": "The group of the kind, and the version of its form.",
    "kind": "The kind of object.",
    "metadata": "Its name, namespace, labels and annotations, and what the server keeps of it.",
}
"""Fields that all objects have."""

_ONWARD: Final = re.compile(r"\n {4}")


class Meaning(Struct, frozen=True):
    """What a type means, and its fields by name."""

    text: str = ""
    fields: Mapping[str, str] = {}


_NOTHING: Final = Meaning()


def of(name: str) -> Meaning:
    """What a type means, by its name in the tables; nothing where nobody has said it."""
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
