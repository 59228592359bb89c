"""What a member runs, and what it has said of it: plain data for ``cluster``, ``reports`` and ``recovery``."""

from typing import Final

from msgspec import Struct

from engine.members import room, specs
from engine.members.templates import EMPTY, Rank, Template
from events import clusters, health, shapes, tracing

Version = tuple[int, int]
"""(term, step) of the work that a state or a report speaks of."""

TOMBSTONES_MAX: Final = 65_536
"""Removed workloads whose last version is remembered, so that a stale work does not bring them back."""


class Cohort(Struct):
    """Replicas that were created, and admitted, together; they are ready from ``ready_ms`` on."""

    count: int
    created_ms: int
    ready_ms: int
    running: bool = False


class Why(Struct, frozen=True, gc=False):
    """The work behind a report: its position in the log, and the story and trace that it belongs to."""

    cause: str = ""
    story: str = ""
    trace: tracing.Trace = tracing.NO_TRACE


class Workload(Struct, kw_only=True):
    """One workload in one cluster.

    ``version`` is that of the work which it runs, ``known`` the newest one heard of. ``replicas`` is absent for
    kinds without. ``cohorts`` are in order of age, pods are counted along them; ``pending`` replicas come last.
    A ``preserved`` workload was given up by the control plane, and runs on. ``fault`` is why the newest work could not
    be applied; then what ran before runs on. ``labels`` and ``reading`` are those of its work.
    """

    key: str
    ref: shapes.WorkloadRef
    version: Version
    known: Version
    created_ms: int
    shard: int = 0
    offset: int = 0
    replicas: int | None = None
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    reading: shapes.Reading | None = None
    template: Template = EMPTY
    fault: str = ""
    cohorts: list[Cohort] = []
    pending: int = 0
    pending_since_ms: int = 0
    suspended: bool = False
    preserved: bool = False
    why: Why = Why()
    reported: health.WorkloadReported | None = None

    @property
    def ready(self) -> int:
        """Replicas that are ready."""
        return sum(cohort.count for cohort in self.cohorts if cohort.running)

    @property
    def admitted(self) -> int:
        """Replicas that have room: running or starting."""
        return sum(cohort.count for cohort in self.cohorts)


class Gone(Struct, frozen=True, gc=False):
    """A removal that is still to be reported."""

    version: Version
    why: Why


class Faults(Struct):
    """What is wrong with a member.

    ``down``: it takes and tells nothing. ``slowness`` multiplies start-up times. Of its reports each
    ``lose_every``-th is lost; 0 loses none.
    """

    down: bool = False
    slowness: int = 1
    lose_every: int = 0


class MemberState(Struct, kw_only=True):
    """A member at one moment.

    ``ranks`` are its PriorityClasses by name, ``is_ranked`` says whether any template names one. ``refused`` are the
    works that could not be applied where nothing ran before. ``unplaced`` and ``waiting`` are
    workloads with pending replicas: those that were not tried yet, and those for which there was no room. ``starts``
    is a heap of (time, key) at which replicas become ready. ``dirty`` workloads may have something new to say,
    ``lost`` ones said it in vain and say it again at ``retry_ms``. At ``shift_ms`` it reports that
    replicas which took up capacity are ready. ``said_*`` is what the log has from the member, None for nothing.
    """

    spec: specs.MemberSpec
    room: room.Room
    faults: Faults
    workloads: dict[str, Workload] = {}
    ranks: dict[str, Rank] = {}
    is_ranked: bool = False
    refused: dict[str, Workload] = {}
    tombstones: dict[str, Version] = {}
    gone: dict[str, Gone] = {}
    unplaced: dict[str, None] = {}
    waiting: dict[str, None] = {}
    starts: list[tuple[int, str]] = []
    room_freed: bool = False
    room_changed: bool = True
    dirty: dict[str, None] = {}
    lost: dict[str, None] = {}
    retry_ms: int | None = None
    reports: int = 0
    joined: bool = False
    shift_ms: int | None = None
    said_capacity: clusters.CapacityReported | None = None
    said_ready: bool | None = None


def initial_state(spec: specs.MemberSpec) -> MemberState:
    """A member that runs nothing and has said nothing; raises quantity.QuantityError for malformed nodes."""
    return MemberState(spec=spec, room=room.room_of(spec.nodes), faults=Faults())
