"""Lists of pods and workloads for users, computed on request from a member's replica counts.

A pod's name is derived from its cluster, its workload and its index, so it is the same on each request.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import structs

from engine.simulation import rollouts
from engine.simulation.listed_statuses import Pod, WorkloadStatus
from engine.simulation.state import NEVER_MS, MemberState, Workload
from engine.works import templates

SUCCEEDED: Final = "Succeeded"
_SUFFIX_LETTERS: Final = 5
LabelTest: TypeAlias = Callable[[Mapping[str, str]], bool]


class FoundPod(NamedTuple):
    """A pod and its workload."""

    workload: Workload
    pod: Pod


def pods_of(cluster: str, workload: Workload) -> Iterator[Pod]:
    """Yield the pods of a workload in a cluster, oldest first."""
    if workload.former_pods:
        for group in rollouts.groups(workload):
            yield from pods_of(cluster, group)
        return
    slots = iter(rollouts.current_slots(workload) if workload.slots is None else workload.slots)
    for slot in itertools.islice(slots, workload.succeeded):
        pod = _pod(cluster, workload, slot, workload.created_ms, None, running=False)
        yield structs.replace(pod, phase=SUCCEEDED)
    for cohort in workload.cohorts:
        for slot in itertools.islice(slots, cohort.count):
            yield _pod(cluster, workload, slot, cohort.created_ms, cohort.ready_ms, running=cohort.running)
    for slot in slots:
        yield _pod(cluster, workload, slot, workload.pending_since_ms, None, running=False)


def find_pod(state: MemberState, namespace: str, name: str) -> FoundPod | None:
    """Return a pod that runs or waits, with its workload; None if no workload has such a pod."""
    for workload in state.workloads.values():
        if workload.ref.namespace != namespace or not name.startswith(workload.ref.name):
            continue
        for pod in pods_of(state.spec.name, workload):
            if pod.name == name and pod.phase != SUCCEEDED:
                return FoundPod(workload, pod)
    return None


def pods(
    states: Iterable[MemberState], namespace: str | None, labels: LabelTest | None, limit: int | None
) -> list[Pod]:
    """Return at most ``limit`` pods, ordered by member, workload and age; None for an argument means all."""
    selected = (
        pod
        for state, workload in _selected(states, namespace)
        if labels is None or labels(workload.template.labels)
        for pod in pods_of(state.spec.name, workload)
    )
    return list(itertools.islice(selected, limit))


def workloads(
    states: Iterable[MemberState], namespace: str | None, limit: int | None
) -> list[WorkloadStatus]:
    """Return at most ``limit`` workloads, ordered by member and key; None for namespace or limit means all."""
    selected = (status_of(state, workload) for state, workload in _selected(states, namespace))
    return list(itertools.islice(selected, limit))


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
        updated=workload.updated,
        available=workload.ready,
        created_ms=workload.created_ms,
        term=workload.version[0],
        step=workload.version[1],
        suspended=workload.suspended,
        preserved=workload.preserved,
    )


def pod_name(cluster: str, workload: Workload, slot: int) -> str:
    """Return the name of a workload's pod in this slot; its form depends on the workload's kind, as in Kubernetes."""
    name, digest, slot = workload.ref.name, workload.template.digest, slot % rollouts.FORMER_SLOTS
    if workload.ref.kind == "StatefulSet":
        return f"{name}-{slot}"
    replaced = workload.replaced.get(slot, 0)
    seed = f"{cluster}\0{workload.origin or workload.object_key}\0{digest}\0{slot}"
    suffix = templates.letters(f"{seed}\0{replaced}" if replaced else seed, _SUFFIX_LETTERS)
    return f"{name}-{digest}-{suffix}" if workload.ref.kind == "Deployment" else f"{name}-{suffix}"


def _pod(
    cluster: str,
    workload: Workload,
    slot: int,
    created_ms: int,
    ready_ms: int | None,
    *,
    running: bool,
) -> Pod:
    lacks_image = ready_ms == NEVER_MS
    return Pod(
        cluster=cluster,
        namespace=workload.ref.namespace,
        name=pod_name(cluster, workload, slot),
        owner=f"{workload.ref.kind}/{workload.ref.name}",
        labels=workload.template.labels,
        phase="Running" if running else "Pending",
        ready=running,
        created_ms=created_ms,
        ready_ms=None if lacks_image else ready_ms,
        slot=slot,
        waiting="ImagePullBackOff" if lacks_image else "",
    )
