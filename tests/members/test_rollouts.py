"""Rolling updates in members: pods are replaced within the limits of their workload, and reported by time."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.simulation import cluster, lists, statuses
from engine.simulation.state import MemberState, Workload
from engine.works import templates
from engine.works.templates import Template
from events import health
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples

_LIMITS: Final = [0, 1, 2, "0%", "25%", "50%", "100%"]


def _template(image: str, kind: str = "Deployment", **fields: object) -> Template:
    value = manifests.deployment("nginx", image=image)
    spec = value["spec"]
    assert isinstance(spec, dict)
    return templates.read(msgspec.json.encode({**value, "kind": kind, "spec": {**spec, **fields}}))


def _applied(
    state: MemberState, replicas: int, template: Template, at_ms: int, kind: str = "Deployment"
) -> None:
    work = examples.applied("nginx", replicas, step=at_ms + 1, kind=kind, offset=at_ms)
    cluster.apply_work(state, work, at_ms, template=template)


def _workload(state: MemberState) -> Workload:
    (workload,) = state.workloads.values()
    return workload


def _run(state: MemberState, at_ms: int, until_ms: int) -> list[health.WorkloadReported]:
    """Advance a member by start-up times; return its reports on the workload."""
    workload_reports: list[health.WorkloadReported] = []
    for time in range(at_ms, until_ms + 1, examples.STARTUP_MS):
        reports = cluster.advance(state, time)
        workload_reports += [
            report.data for report in reports if isinstance(report.data, health.WorkloadReported)
        ]
    return workload_reports


def _images(state: MemberState, *templates_used: Template) -> list[int]:
    """The index of the template of each pod, by name."""
    names = [template.digest for template in templates_used]
    pods = lists.pods_of("member1", _workload(state))
    return [next(i for i, name in enumerate(names) if name in pod.name) for pod in pods]


@given(
    replicas=st.integers(1, 12),
    surge=st.sampled_from(_LIMITS),
    unavailable=st.sampled_from(_LIMITS),
    startup_ms=st.sampled_from([0, examples.STARTUP_MS]),
)
def test_rollout_keeps_within_its_limits_and_ends(
    replicas: int, surge: int | str, unavailable: int | str, startup_ms: int
) -> None:
    state = examples.new_state(startup_ms=startup_ms, pods="100")
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    old, new = (_template(image, strategy={"rollingUpdate": limits}) for image in ("nginx:1", "nginx:2"))
    strategy = new.strategy
    assert strategy is not None
    most = replicas + strategy.surge(replicas)
    least = replicas - strategy.unavailable(replicas)
    assert most > least
    _applied(state, replicas, old, 0)
    _run(state, 0, 200)
    _applied(state, replicas, new, 1000)
    for time in range(1000, 10_000, 200):
        cluster.advance(state, time)
        workload = _workload(state)
        assert workload.admitted + workload.pending <= most
        assert workload.ready >= least
        if not workload.former_pods and workload.ready == replicas:
            break
    assert (_workload(state).ready, _workload(state).updated, _workload(state).former_pods) == (
        replicas,
        replicas,
        (),
    )
    assert (state.capacity.running["pods"], state.capacity.starting.get("pods", 0)) == (replicas * 10**9, 0)


def test_rollout_is_reported_by_time_and_not_by_pods() -> None:
    state = examples.new_state(pods="1000")
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    old, new = (_template(image, strategy=strategy) for image in ("nginx:1", "nginx:2"))
    _applied(state, 100, old, 0)
    _run(state, 0, 2000)
    _applied(state, 100, new, 3000)
    reports: list[object] = []
    for time in range(3000, 30_000, 200):
        reports += cluster.advance(state, time)
    assert not _workload(state).former_pods
    assert _workload(state).ready == 100
    assert len(reports) <= 2 * (27 + 2)


def test_status_of_a_rollout_shows_its_progress() -> None:
    state = examples.new_state(pods="100")
    old, new = _template("nginx:1"), _template("fake/nginx")
    _applied(state, 4, old, 0)
    _run(state, 0, 200)
    shown = statuses.status(state, _workload(state))
    assert KubeObject({"status": shown}).condition("Progressing")["reason"] == "NewReplicaSetAvailable"
    _applied(state, 4, new, 1000)
    (report,) = _run(state, 1000, 1000)
    assert (report.replicas, report.updated, report.ready, report.healthy) == (5, 2, 3, False)
    shown = statuses.status(state, _workload(state))
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    assert [shown[name] for name in counts] == [5, 2, 3, 3, 2]
    status: Json = {"status": shown}
    assert KubeObject(status).condition("Available")["status"] == "True"
    assert KubeObject(status).condition("Progressing")["reason"] == "ReplicaSetUpdated"
    assert sorted(_images(state, old, new)) == [0, 0, 0, 1, 1]
    cluster.advance(state, 601_000)
    status = {"status": statuses.status(state, _workload(state))}
    assert KubeObject(status).condition("Progressing")["reason"] == "ProgressDeadlineExceeded"
    _applied(state, 4, _template("nginx:3"), 602_000)
    _run(state, 602_000, 604_000)
    status = {"status": statuses.status(state, _workload(state))}
    assert KubeObject(status).condition("Progressing")["reason"] == "NewReplicaSetAvailable"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_rollout_that_is_undone_keeps_the_pods_that_it_did_not_replace(kind: str) -> None:
    state = examples.new_state(pods="100")
    old, broken = _template("nginx:1", kind), _template("fake/nginx", kind)
    _applied(state, 4, old, 0, kind)
    _run(state, 0, 200)
    before = {(pod.name, pod.created_ms) for pod in lists.pods_of("member1", _workload(state))}
    _applied(state, 4, broken, 1000, kind)
    _run(state, 1000, 2000)
    assert _workload(state).ready == 3
    _applied(state, 4, old, 3000, kind)
    _run(state, 3000, 4000)
    after = {(pod.name, pod.created_ms) for pod in lists.pods_of("member1", _workload(state))}
    assert (len(after), len(after & before)) == (4, 3)
    assert (_workload(state).former_pods, _workload(state).ready) == ((), 4)
    assert state.capacity.running["pods"] == 4 * 10**9


def test_recreated_deployment_removes_its_pods_first() -> None:
    state = examples.new_state(pods="100")
    for at_ms, image in ((0, "nginx:1"), (1000, "nginx:2")):
        _applied(state, 3, _template(image, strategy={"type": "Recreate"}), at_ms)
        cluster.advance(state, at_ms)
        assert (_workload(state).ready, _workload(state).admitted) == (0, 3)
        cluster.advance(state, at_ms + 200)


def test_paused_deployment_keeps_its_pods_until_it_is_resumed() -> None:
    state = examples.new_state(pods="100")
    old = _template("nginx:1")
    _applied(state, 3, old, 0)
    _run(state, 0, 200)
    _applied(state, 3, _template("nginx:2", paused=True), 1000)
    _run(state, 1000, 3000)
    assert (_workload(state).outdated, _workload(state).ready, _workload(state).updated) == (3, 3, 0)
    _applied(state, 3, _template("nginx:2"), 4000)
    _run(state, 4000, 6000)
    assert (_workload(state).outdated, _workload(state).ready, _workload(state).updated) == (0, 3, 3)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_ordered_workload_replaces_its_pods_one_by_one_from_the_last(kind: str) -> None:
    state = examples.new_state(pods="100")
    _applied(state, 3, _template("nginx:1", kind), 0, kind)
    _run(state, 0, 200)
    _applied(state, 3, _template("nginx:2", kind), 1000, kind)
    seen: list[tuple[int, list[int]]] = []
    for time in range(1000, 2000, 200):
        cluster.advance(state, time)
        workload = _workload(state)
        seen.append((workload.ready, [slot for former in workload.former_pods for slot in former.slots]))
    assert seen == [(2, [0, 1]), (2, [0]), (2, []), (3, []), (3, [])]
    slots = [pod.slot for pod in lists.pods_of("member1", _workload(state))]
    assert slots == [2, 1, 0]


def test_partition_keeps_the_pods_below_it() -> None:
    state = examples.new_state(pods="100")
    rolling = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
    old, new = (_template(image, "StatefulSet", **rolling) for image in ("nginx:1", "nginx:2"))
    _applied(state, 4, old, 0, "StatefulSet")
    _run(state, 0, 200)
    _applied(state, 4, new, 1000, "StatefulSet")
    _run(state, 1000, 3000)
    assert [former.slots for former in _workload(state).former_pods] == [[0, 1]]
    shown = statuses.status(state, _workload(state))
    assert (shown["updatedReplicas"], shown["currentReplicas"], shown["readyReplicas"]) == (2, 2, 4)
    assert (shown["currentRevision"], shown["updateRevision"]) == (
        f"nginx-{old.digest}",
        f"nginx-{new.digest}",
    )
    _applied(state, 4, _template("nginx:2", "StatefulSet"), 4000, "StatefulSet")
    _run(state, 4000, 6000)
    assert not _workload(state).former_pods


@pytest.mark.parametrize(("seconds", "deadline_s"), [(10**400, 2**31 - 1), (-1, 0), (30, 30)])
def test_deadline_of_a_rollout_is_a_time_that_can_be_waited_for(seconds: int, deadline_s: int) -> None:
    strategy = _template("nginx", progressDeadlineSeconds=seconds).strategy
    assert strategy is not None
    assert strategy.deadline_s == deadline_s
