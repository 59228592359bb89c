"""Recorded decisions of Karmada's scheduler.

The environment variable ``REBALLAST_VECTORS`` names another directory with files of the same names.
"""

import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec


class Vector(msgspec.Struct, frozen=True):
    """A case: the request, and every valid answer. Only scheduling passes have a ``trigger``."""

    id: str
    feature: str
    input: msgspec.Raw
    accept: msgspec.Raw
    trigger: str = ""


def directory() -> Path:
    """Return the directory of the vectors."""
    return Path(os.environ.get("REBALLAST_VECTORS") or Path(__file__).parent)


def groups(kind: str) -> list[str]:
    """Return the existing groups of a kind: ``schedule`` gives ``schedule-affinity`` and so on."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in directory().glob(f"{kind}-*.jsonl.gz"))


def load(group: str) -> list[Vector]:
    """Return the cases of a group, in file order."""
    lines = gzip.decompress((directory() / f"{group}.jsonl.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Vector) for line in lines]


def by_feature(vectors: Iterable[Vector]) -> dict[str, list[Vector]]:
    """Return the cases of each feature, with features in name order."""
    cases: dict[str, list[Vector]] = {}
    for vector in vectors:
        cases.setdefault(vector.feature, []).append(vector)
    return dict(sorted(cases.items()))


def assert_accepted(cases: list[Vector], answer: Callable[[Vector], object]) -> None:
    """Fail if an answer is not among the accepted ones of its case."""
    failures: list[str] = []
    for vector in cases:
        result = answer(vector)
        accepted = msgspec.json.decode(vector.accept, type=list[type(result)])
        if result not in accepted:
            failures.append(f"{vector.id}: {result}, accepted are {accepted}")
    assert not failures, f"{len(cases) - len(failures)} of {len(cases)}\n" + "\n".join(failures)
