"""Mutations of one object, as values: a pure function from the stored object to the events to append.

A mutation is applied again, to a newer object, if another client wrote in between.
"""

import enum
from typing import Protocol

from msgspec import Struct

from engine.writing.stored_objects import StoredObject
from engine.writing.targets import Target
from events import shapes, specs
from events.kube_objects import KubeObject
from projections.clusters import Cluster

StoredState = StoredObject | Cluster | None


class Action(enum.StrEnum):
    """Effect of a mutation on its object. A marked object is terminating: it waits for its finalizers."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    MARKED = "marked"
    DELETED = "deleted"


class Mutated(Struct, frozen=True, kw_only=True):
    """An object after a mutation: ``value`` as rendered, and the events to append (none if nothing changes).

    A report does not write the object itself: it moves no version and takes effect as long as the object
    exists. Examples are a cluster's capacity, or permission to delete a template's workload.
    """

    action: Action
    value: KubeObject = KubeObject({})
    events: tuple[shapes.Event, ...] = ()
    warnings: tuple[str, ...] = ()
    is_report: bool = False


class Verdict(enum.Enum):
    """Why a mutation was not made.

    *Late*: other clients wrote in between, again and again. *Not found*: there is no such object. *Unknown*:
    the append failed in a way that leaves open whether the events were stored.
    """

    LATE = enum.auto()
    NOT_FOUND = enum.auto()
    UNKNOWN = enum.auto()


class Problem(Struct, frozen=True):
    """A mutation that was not made, and the reason as a sentence."""

    verdict: Verdict
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """A mutation that was made, or that had nothing to change.

    ``resource_version`` is the sequence number of the write, or that of the object if nothing changed; 0 for
    a dry run. ``stored`` is the object after the write, None if another client wrote it since.
    """

    mutated: Mutated
    resource_version: int = 0
    stored: StoredObject | None = None


class Mutation(Protocol):
    """A change of one object."""

    @property
    def target(self) -> Target: ...

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return the object after the mutation, with the events that make it. Pure; raises StatusError."""
        ...


class Edited(Struct, frozen=True):
    """An object after an edit, and warnings for the client."""

    value: KubeObject
    warnings: tuple[str, ...] = ()


class Edit(Protocol):
    """A change of an object as clients see it."""

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the new object; ``live`` is the current one, if it exists. Pure; raises StatusError."""
        ...


class BindingChange(Struct, frozen=True, kw_only=True):
    """Change the parts of a binding that clients may write.

    ``clusters`` are those in which the kept workload may now be deleted. ``scheduling`` and ``dispatching`` are
    whether these are suspended; None if that stays as it is.
    """

    target: Target
    clusters: tuple[str, ...] = ()
    scheduling: bool | None = None
    dispatching: bool | None = None

    @property
    def is_empty(self) -> bool:
        return not self.clusters and not self._suspends

    @property
    def _suspends(self) -> bool:
        return self.scheduling is not None or self.dispatching is not None

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return one event for each change."""
        if stored is None:
            return not_found(self.target)
        template = self.target.reference
        events: tuple[shapes.Event, ...] = tuple(
            specs.DeletionAllowed(template=template, cluster=name) for name in self.clusters
        )
        if self._suspends:
            written = specs.SuspensionWritten(
                template=template, scheduling=self.scheduling, dispatching=self.dispatching
            )
            events += (written,)
        return Mutated(action=Action.CONFIGURED, events=events, is_report=True)


def not_found(target: Target) -> Problem:
    """The problem of a mutation whose object does not exist."""
    where = f" in namespace {target.namespace}" if target.namespace else ""
    return Problem(Verdict.NOT_FOUND, f'{target.resource} "{target.name}" not found{where}')
