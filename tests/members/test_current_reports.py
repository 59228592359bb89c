"""The last report on each object equals a new one, whatever the control plane and clients of the member did."""

from typing import Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.simulation import cluster, reports, unmanaged
from engine.simulation.state import MemberState
from engine.works import templates
from events import clusters, shapes, works
from events.json_values import Json
from tests.builders import manifests
from tests.members import examples

_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "PodDisruptionBudget": "policy/v1",
    "ResourceQuota": "v1",
}
_VALUES: Final = (
    ".active",
    ".succeeded",
    ".currentReplicas",
    ".desiredReplicas",
    ".currentHealthy",
    ".desiredHealthy",
    ".disruptionsAllowed",
    ".expectedPods",
)
_OPERATIONS: Final = ("apply", "apply", "write", "write", "overwrite", "remove", "preserve", "delete")

_steps = st.lists(
    st.tuples(
        st.sampled_from(_OPERATIONS),
        st.sampled_from(list(_VERSIONS)),
        st.integers(0, 4),
        st.sampled_from([0, examples.STARTUP_MS, 6_000]),
    ),
    min_size=6,
    max_size=12,
)


def _manifest(kind: str, count: int) -> Json:
    selector = {"matchLabels": {"app": "nginx"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}
    template = manifests.pod_template("nginx", image=f"nginx:{count}", requests={"cpu": f"{1 + count}00m"})
    specs: dict[str, Json] = {
        "Deployment": {"replicas": count, "selector": selector, "template": template},
        "Job": {"parallelism": 1, "completions": 1 + count, "template": template},
        "HorizontalPodAutoscaler": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1 + count},
        "PodDisruptionBudget": {"selector": selector, "minAvailable": count},
        "ResourceQuota": {"hard": {"pods": str(count)}},
    }
    return manifests.manifest(_VERSIONS[kind], kind, "nginx", "default", spec=specs[kind])


def _carry_out(state: MemberState, operation: str, kind: str, count: int, step: int, at_ms: int) -> None:
    ref = shapes.WorkloadRef(api_version=_VERSIONS[kind], kind=kind, name="nginx", namespace="default")
    key, manifest = ref.binding_key, msgspec.json.encode(_manifest(kind, count))
    match operation:
        case "write":
            unmanaged.apply(state, manifest, f"uid-{step}", at_ms)
        case "delete":
            cluster.delete_object(state, clusters.MemberObjectDeleted(name="member1", object=ref), at_ms)
        case "apply" | "overwrite":
            replicas = {"Deployment": count, "Job": 1}.get(kind)
            work = examples.applied("nginx", replicas, kind=kind, step=step, offset=step)
            reading = shapes.Reading(values=_VALUES)
            work = msgspec.structs.replace(
                work, template=ref, reading=reading, overwrites=operation == "overwrite"
            )
            cluster.apply_work(state, work, at_ms, template=templates.read(manifest))
        case _:
            removal = works.WorkRemoved(
                cluster="member1", key=key, term=1, step=step, preserved=operation == "preserve"
            )
            cluster.apply_work(state, removal, at_ms)


def _advance(state: MemberState, at_ms: int, until_ms: int) -> None:
    """Advance a member through all times at which something is due, and until it has reported everything."""
    while True:
        cluster.advance(state, at_ms)
        while cluster.is_behind(state):
            cluster.advance(state, at_ms)
        due_ms = cluster.due_ms(state)
        if due_ms is None or due_ms > until_ms:
            return
        at_ms = max(at_ms, due_ms)


@given(_steps)
def test_last_report_on_each_object_is_current(steps: list[tuple[str, str, int, int]]) -> None:
    state, at_ms = examples.new_state(), 0
    for step, (operation, kind, count, pause_ms) in enumerate(steps, 1):
        _carry_out(state, operation, kind, count, step, at_ms)
        _advance(state, at_ms, at_ms + pause_ms)
        at_ms += pause_ms
    _advance(state, at_ms, at_ms + 60_000)
    managed = [
        key
        for key, workload in state.workloads.items()
        if not (workload.preserved or workload.is_unmanaged or key in state.gone)
    ]
    assert [key for key in managed if not reports.is_current(state, key)] == []
