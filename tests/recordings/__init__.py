"""Decisions of a real control plane's scheduler, read from recorded watch streams.

Each file is gzip JSON lines: first ``meta``, then watch events (``type``, ``object``) of all kinds in the order
of their resourceVersions. The environment variable ``REBALLAST_RECORDINGS`` names another directory with
such files.

The scheduler writes a decision in up to three steps: ``spec.clusters`` with the applied placement, the observed
affinity, then the Scheduled condition, which on success names the generation that was decided on. The basis of a
decision is the binding as it was before these writes.
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.cli import schedule_input

_BINDINGS: Final = frozenset({"ResourceBinding", "ClusterResourceBinding"})
_APPLIED: Final = "policy.karmada.io/applied-placement"

Fleet = tuple[bytes, ...]
"""All Cluster objects at one time, as JSON."""


class Metadata(Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    generation: int = 0
    annotations: dict[str, str] = {}


class Head(Struct, frozen=True):
    """Kind and metadata of any object."""

    kind: str
    metadata: Metadata


class Condition(Struct, frozen=True):
    type: str
    status: str
    reason: str
    message: str


class Status(Struct, frozen=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()
    last_scheduled_time: str = ""
    scheduler_observed_generation: int = 0
    scheduler_observing_affinity_name: str = ""


class Binding(Struct, frozen=True):
    """A binding at one resourceVersion: what the scheduler reads, and what it writes."""

    metadata: Metadata
    spec: schedule_input.Spec
    status: Status = Status()

    @property
    def version(self) -> int:
        return int(self.metadata.resource_version)

    @property
    def applied(self) -> str:
        return self.metadata.annotations.get(_APPLIED, "")

    @property
    def scheduled(self) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == "Scheduled"), None)

    @property
    def placed(self) -> dict[str, int]:
        return {cluster.name: cluster.replicas for cluster in self.spec.clusters}

    @property
    def evicting(self) -> frozenset[str]:
        return frozenset(task.from_cluster for task in self.spec.graceful_eviction_tasks)

    def is_decided_after(self, earlier: "Binding") -> bool:
        """Whether a scheduling pass ended between two versions."""
        if self.scheduled is None:
            return False
        is_success = self.status.last_scheduled_time != earlier.status.last_scheduled_time
        return is_success or self.scheduled != earlier.scheduled

    def is_written_by_the_scheduler(self, earlier: "Binding") -> bool:
        """Whether a version is a write of the scheduler itself, before the condition; an eviction is not."""
        names = (
            self.status.scheduler_observing_affinity_name,
            earlier.status.scheduler_observing_affinity_name,
        )
        return (
            self.applied != earlier.applied
            or names[0] != names[1]
            or (self.placed != earlier.placed and not self.evicting - earlier.evicting)
        )


class Line(Struct, frozen=True):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")


class Decision(Struct, frozen=True):
    """A recorded decision: its basis, the clusters from then until it was written, and its result.

    ``basis`` is the binding as JSON, ``applied`` the placement that the decision before it used, as JSON or empty.
    """

    name: str
    basis: bytes
    applied: str
    fleets: tuple[Fleet, ...]
    version: int
    placed: dict[str, int]
    condition: Condition
    is_success: bool


def names() -> list[str]:
    """Return the names of the recordings."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in _directory().glob("*.jsonl.gz"))


def _directory() -> Path:
    return Path(os.environ.get("REBALLAST_RECORDINGS") or Path(__file__).parent)


def decisions(recording: str) -> Iterator[Decision]:
    """Yield the decisions of a recording in the order in which they were written."""
    clusters: dict[str, bytes] = {}
    fleets: list[tuple[int, Fleet]] = [(0, ())]
    histories: dict[str, list[tuple[Binding, bytes]]] = {}
    for line in gzip.decompress((_directory() / f"{recording}.jsonl.gz").read_bytes()).splitlines():
        event = _LINE.decode(line)
        head = _HEAD.decode(event.object) if event.object else None
        if head is None:
            continue
        if head.kind == "Cluster":
            clusters[head.metadata.name] = bytes(event.object)
            if event.type == "DELETED":
                del clusters[head.metadata.name]
            fleets.append((int(head.metadata.resource_version), tuple(clusters.values())))
        elif head.kind in _BINDINGS:
            history = histories.setdefault(head.metadata.uid, [])
            history.append((_BINDING.decode(event.object), bytes(event.object)))
            if len(history) > 1 and history[-1][0].is_decided_after(history[-2][0]):
                yield _decision(history, fleets)


def _decision(history: list[tuple[Binding, bytes]], fleets: list[tuple[int, Fleet]]) -> Decision:
    versions = [binding for binding, _ in history]
    final = versions[-1]
    is_success = final.status.last_scheduled_time != versions[-2].status.last_scheduled_time
    basis = _basis(versions, is_success=is_success)
    placed = next(
        (
            later.placed
            for earlier, later in zip(versions[basis:], versions[basis + 1 :], strict=False)
            if later.placed != earlier.placed and later.is_written_by_the_scheduler(earlier)
        ),
        versions[basis].placed,
    )
    first = max(number for number, (version, _) in enumerate(fleets) if version <= versions[basis].version)
    condition = final.scheduled
    assert condition is not None
    return Decision(
        name=final.metadata.name,
        basis=history[basis][1],
        applied=versions[basis].applied,
        fleets=tuple(fleet for version, fleet in fleets[first:] if version <= final.version),
        version=final.version,
        placed=placed,
        condition=condition,
        is_success=is_success,
    )


def _basis(versions: list[Binding], *, is_success: bool) -> int:
    """Index of the version that a scheduling pass read; the last version is the one that ends it."""
    observed = versions[-1].status.scheduler_observed_generation
    before = range(len(versions) - 1)
    previous = [number for number in before[1:] if versions[number].is_decided_after(versions[number - 1])]
    index = before[-1]
    if is_success:
        index = max(number for number in before if versions[number].metadata.generation == observed)
    while index > (previous[-1] if previous else 0) and versions[index].is_written_by_the_scheduler(
        versions[index - 1]
    ):
        index -= 1
    return index


_LINE: Final = msgspec.json.Decoder(Line)
_HEAD: Final = msgspec.json.Decoder(Head)
_BINDING: Final = msgspec.json.Decoder(Binding)
