"""Lists of pods and workloads for users, computed on request from a member's counts.

A pod's name is derived from its cluster, its workload and its index, so it is the same on each request.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, structs

from engine.kubeapi.values import selectors
from engine.simulation.state import MemberState, Workload
from engine.works import templates
from events import shapes

LISTED_MAX: Final = 10_000
"""Maximum length of a list, whatever limit is requested."""

SUCCEEDED: Final = "Succeeded"
_SUFFIX_LETTERS: Final = 5


class Pod(Struct, frozen=True, kw_only=True, rename="camel"):
    """One replica.

    ``phase`` is Running, Pending or Succeeded; ``ready_ms`` is when it is or will be ready, None if not admitted.
    """

    cluster: str
    namespace: str
    name: str
    owner: str
    labels: dict[str, str]
    phase: str
    ready: bool
    created_ms: int
    ready_ms: int | None = None
    restarts: int = 0


class WorkloadStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Status of a workload in a cluster; ``term`` and ``step`` are the version of the work that it runs."""

    cluster: str
    key: str
    workload: shapes.WorkloadRef
    replicas: int
    ready: int
    updated: int
    available: int
    created_ms: int
    term: int
    step: int
    suspended: bool
    preserved: bool


def pods_of(state: MemberState, workload: Workload) -> Iterator[Pod]:
    """Yield the pods of a workload, oldest first."""
    index = 0
    for _ in range(workload.succeeded):
        yield structs.replace(
            _pod(state, workload, index, workload.created_ms, None, running=False), phase=SUCCEEDED
        )
        index += 1
    for cohort in workload.cohorts:
        for _ in range(cohort.count):
            yield _pod(state, workload, index, cohort.created_ms, cohort.ready_ms, running=cohort.running)
            index += 1
    for _ in range(workload.pending):
        yield _pod(state, workload, index, workload.pending_since_ms, None, running=False)
        index += 1


def pods(
    states: Iterable[MemberState], namespace: str | None, selector: selectors.LabelSelector, limit: int
) -> list[Pod]:
    """Return at most ``limit`` pods, by member, workload and age; namespace None selects all."""
    selected = (
        pod
        for state, workload in _selected(states, namespace)
        if selector.matches(workload.template.labels)
        for pod in pods_of(state, workload)
    )
    return list(itertools.islice(selected, min(limit, LISTED_MAX)))


def workloads(states: Iterable[MemberState], namespace: str | None, limit: int) -> list[WorkloadStatus]:
    """Return at most ``limit`` workloads, by member and key; namespace None selects all."""
    selected = (status_of(state, workload) for state, workload in _selected(states, namespace))
    return list(itertools.islice(selected, min(limit, LISTED_MAX)))


def _selected(states: Iterable[MemberState], namespace: str | None) -> Iterator[tuple[MemberState, Workload]]:
    for state in states:
        for key in sorted(state.workloads):
            workload = state.workloads[key]
            if namespace is None or workload.ref.namespace == namespace:
                yield state, workload


def status_of(state: MemberState, workload: Workload) -> WorkloadStatus:
    count = workload.admitted + workload.pending
    return WorkloadStatus(
        cluster=state.spec.name,
        key=workload.key,
        workload=workload.ref,
        replicas=count,
        ready=workload.ready,
        updated=count,
        available=workload.ready,
        created_ms=workload.created_ms,
        term=workload.version[0],
        step=workload.version[1],
        suspended=workload.suspended,
        preserved=workload.preserved,
    )


def pod_name(cluster: str, workload: Workload, index: int) -> str:
    """Return the name of a workload's pod with this index, in the form that its kind gives to pods."""
    name, digest = workload.ref.name, workload.template.digest
    if workload.ref.kind == "StatefulSet":
        return f"{name}-{index}"
    suffix = templates.letters(f"{cluster}\0{workload.object_key}\0{digest}\0{index}", _SUFFIX_LETTERS)
    return f"{name}-{digest}-{suffix}" if workload.ref.kind == "Deployment" else f"{name}-{suffix}"


def _pod(
    state: MemberState,
    workload: Workload,
    index: int,
    created_ms: int,
    ready_ms: int | None,
    *,
    running: bool,
) -> Pod:
    return Pod(
        cluster=state.spec.name,
        namespace=workload.ref.namespace,
        name=pod_name(state.spec.name, workload, index),
        owner=f"{workload.ref.kind}/{workload.ref.name}",
        labels=workload.template.labels,
        phase="Running" if running else "Pending",
        ready=running,
        created_ms=created_ms,
        ready_ms=ready_ms,
    )
