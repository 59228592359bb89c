"""Read the decisions of Karmada's scheduler from successive versions of a binding.

The scheduler writes a decision in up to three steps: first ``spec.clusters`` and the applied placement, then the
observed affinity, then the Scheduled condition and, on success, the generation on which it decided. The basis of a
decision is the binding as it was before these writes.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.domain import marks
from engine.kubeapi.values import resource_versions
from engine.objects import placements
from engine.placement import parsing
from events.json_values import DECODING_ERRORS

SCHEDULED: Final = "Scheduled"


class Metadata(Struct, frozen=True, rename="camel"):
    """The metadata fields that are read from a binding."""

    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    generation: int = 0
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    deletion_timestamp: str = ""


class Suspension(Struct, frozen=True):
    """The part of ``spec.suspension`` that is read: whether scheduling is suspended."""

    scheduling: bool = False


class WorkloadGroups(Struct, frozen=True, rename="camel"):
    """A workload's groups. Workloads of an affinity group share all clusters, those of an anti-affinity group none."""

    affinity_group: str = ""
    anti_affinity_group: str = ""


class Spec(parsing.Spec, frozen=True, kw_only=True, rename="camel"):
    """The fields that are read from the spec of a binding; ``scheduler_name`` is the scheduler that decides on it."""

    scheduler_name: str = ""
    suspension: Suspension | None = None
    workload_affinity_groups: WorkloadGroups | None = None


class Condition(Struct, frozen=True, rename="camel"):
    """A condition of a binding."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | msgspec.UnsetType = msgspec.UNSET


class Status(Struct, frozen=True, rename="camel"):
    """The status fields that the scheduler writes."""

    conditions: tuple[Condition, ...] = ()
    last_scheduled_time: str = ""
    scheduler_observed_generation: int = 0
    scheduler_observing_affinity_name: str = ""


class ObservedBinding(Struct, frozen=True):
    """A binding at one resourceVersion: the fields that the scheduler reads, and those that it writes."""

    metadata: Metadata
    spec: Spec
    status: Status = Status()

    @property
    def version(self) -> int:
        """The number in the resourceVersion; 0 if that is not numeric."""
        return resource_versions.number(self.metadata.resource_version) or 0

    @property
    def applied(self) -> str:
        """The placement that the last decision used, as JSON; empty before the first one."""
        return self.metadata.annotations.get(marks.APPLIED_PLACEMENT, "")

    @property
    def scheduled(self) -> Condition | None:
        return next((condition for condition in self.status.conditions if condition.type == SCHEDULED), None)

    @property
    def placed(self) -> dict[str, int]:
        return {cluster.name: cluster.replicas for cluster in self.spec.clusters}

    @property
    def evicting(self) -> frozenset[str]:
        return frozenset(task.from_cluster for task in self.spec.graceful_eviction_tasks)

    def is_written_by_the_scheduler(self, earlier: "ObservedBinding") -> bool:
        """Whether the scheduler wrote clusters, placement or affinity since ``earlier``; evictions are excluded."""
        name = self.status.scheduler_observing_affinity_name
        return (
            self.applied != earlier.applied
            or name != earlier.status.scheduler_observing_affinity_name
            or (self.placed != earlier.placed and not self.evicting - earlier.evicting)
        )

    def is_repeated(self, earlier: "ObservedBinding") -> bool:
        """Whether all fields of this class, except the resourceVersion, are equal to those of ``earlier``."""
        version = earlier.metadata.resource_version
        metadata = structs.replace(self.metadata, resource_version=version)
        return (metadata, self.spec, self.status) == (earlier.metadata, earlier.spec, earlier.status)

    def scheduling_input(self) -> parsing.Input:
        """Return this version as input of the scheduler, with an empty list of clusters: callers add the fleet."""
        return parsing.Input(
            clusters=msgspec.Raw(b"[]"),
            spec=self.spec,
            status=parsing.Status(
                last_scheduled_time=parsing.read_time(self.status.last_scheduled_time),
                scheduler_observing_affinity_name=self.status.scheduler_observing_affinity_name,
            ),
            applied_placement=self._applied_placement(),
        )

    def _applied_placement(self) -> placements.Placement | None:
        """The placement of the last decision; None before the first one."""
        if not self.applied:
            return None
        try:
            return parsing.read_placement(self.applied)
        except DECODING_ERRORS:
            # Like Karmada, assume that the placement has not changed if the recorded one cannot be decoded.
            return self.spec.placement


def ends_with_success(versions: Sequence[ObservedBinding]) -> bool:
    """Whether the last version ends a successful scheduling pass; only the first version may end an earlier pass."""
    status, before = versions[-1].status, versions[-2].status
    if status.last_scheduled_time != before.last_scheduled_time:
        return True
    # Two passes may have equal times, which are in whole seconds. A new observed generation alone does not prove a
    # decision: the scheduler also writes it if there is nothing to decide.
    observed = status.scheduler_observed_generation
    return observed != before.scheduler_observed_generation and any(
        read.metadata.generation == observed and written.is_written_by_the_scheduler(read)
        for read, written in pairwise(versions)
    )


def ends_pass(versions: Sequence[ObservedBinding]) -> bool:
    """Whether the last version ends a scheduling pass; only the first version may end an earlier pass."""
    condition = versions[-1].scheduled
    return condition is not None and (ends_with_success(versions) or condition != versions[-2].scheduled)


def basis_of(versions: Sequence[ObservedBinding]) -> int | None:
    """Return the index of the version that the scheduler read for the pass that ended with the last version.

    None if this version was not observed, because the pass began before the observation did.
    """
    final = versions[-1]
    before = range(len(versions) - 1)
    index = before[-1]
    if ends_with_success(versions):
        observed = final.status.scheduler_observed_generation
        read = [number for number in before if versions[number].metadata.generation == observed]
        if not read:
            return None
        index = read[-1]
    while index > 0 and versions[index].is_written_by_the_scheduler(versions[index - 1]):
        index -= 1
    return index


def placed_after(versions: Sequence[ObservedBinding], basis: int) -> dict[str, int]:
    """Return the clusters and replicas that were written by the scheduling pass that read ``versions[basis]``."""
    for earlier, later in pairwise(versions[basis:]):
        if later.placed != earlier.placed and later.is_written_by_the_scheduler(earlier):
            return later.placed
    return versions[basis].placed


def read_binding(manifest: bytes) -> ObservedBinding:
    """Decode a binding. Raises `msgspec.MsgspecError` if it is malformed."""
    return _BINDING.decode(manifest)


_BINDING: Final = msgspec.json.Decoder(ObservedBinding)
