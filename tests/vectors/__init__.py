"""Recorded decisions of the reference scheduler, read where a test asks for them.

The environment's ``REBALLAST_VECTORS`` names another directory with files of the same names.
"""

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec


class Vector(msgspec.Struct, frozen=True):
    """One case: what was asked, and every legal answer. Only scheduling passes have a ``trigger``."""

    id: str
    feature: str
    input: msgspec.Raw
    accept: msgspec.Raw
    trigger: str = ""


def directory() -> Path:
    """Where the vectors are."""
    return Path(os.environ.get("REBALLAST_VECTORS") or Path(__file__).parent)


def groups(kind: str) -> list[str]:
    """The groups of a kind that are there: ``schedule`` gives ``schedule-affinity`` and so on."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in directory().glob(f"{kind}-*.jsonl.gz"))


def load(group: str) -> list[Vector]:
    """The cases of one group, in the order of the file."""
    lines = gzip.decompress((directory() / f"{group}.jsonl.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Vector) for line in lines]


def by_feature(vectors: Iterable[Vector]) -> dict[str, list[Vector]]:
    """The cases of each feature, features in name order."""
    found: dict[str, list[Vector]] = {}
    for vector in vectors:
        found.setdefault(vector.feature, []).append(vector)
    return dict(sorted(found.items()))
