"""PodDisruptionBudgets of a member: their statuses follow the pods that they select, and no others."""

import msgspec

from engine.kubeapi.values.selectors import LabelSelector
from engine.simulation import cluster, disruption_budgets, lists, unmanaged
from engine.simulation.state import MemberState
from engine.works import templates
from events import health, shapes
from events.json_values import Json
from tests.builders import manifests
from tests.members import examples

KEY = examples.key_of("kept", "PodDisruptionBudget")
HEALTHY, DESIRED = ".currentHealthy", ".desiredHealthy"


def pods(app: str) -> templates.Template:
    """Return the template of a Deployment whose pods have a label."""
    pod: Json = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main"}]}}
    manifest: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": pod}}
    return templates.read(msgspec.json.encode(manifest))


def budget(selector: Json) -> templates.Template:
    """Return the template of a budget that allows one pod to be unavailable."""
    spec: Json = {"maxUnavailable": 1, "selector": selector}
    manifest: Json = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
    return templates.read(msgspec.json.encode(manifest))


def apply_budget(state: MemberState, selector: Json, *, step: int = 1) -> None:
    """Have a member apply the budget ``kept``, and report its numbers of pods."""
    work = examples.applied("kept", None, kind="PodDisruptionBudget", step=step)
    reading = shapes.Reading(values=(HEALTHY, DESIRED))
    work = msgspec.structs.replace(work, reading=reading)
    cluster.apply_work(state, work, 0, template=budget(selector))


def apply_pods(state: MemberState, name: str, count: int, app: str, *, step: int = 1) -> None:
    """Have a member run a Deployment whose pods have a label."""
    cluster.apply_work(state, examples.applied(name, count, step=step), 0, template=pods(app))


def reported(state: MemberState) -> list[tuple[str, str]]:
    """Return the healthy and desired pods in the reports on the budget, until the member has no more to report."""
    counts: list[tuple[str, str]] = []
    while True:
        batch = cluster.advance(state, 0)
        counts.extend(
            (report.data.values[HEALTHY], report.data.values[DESIRED])
            for report in batch
            if isinstance(report.data, health.WorkloadReported) and report.data.key == KEY
        )
        if not batch:
            return counts


def test_budget_is_reported_when_its_pods_change() -> None:
    state = examples.new_state(startup_ms=0)
    apply_budget(state, {"matchLabels": {"app": "web"}})
    assert reported(state)[-1] == ("0", "0")
    apply_pods(state, "web", 3, "web")
    assert reported(state)[-1] == ("3", "2")
    apply_pods(state, "other", 3, "other")
    assert reported(state) == []
    apply_pods(state, "more", 2, "web")
    assert reported(state)[-1] == ("5", "4")
    apply_pods(state, "more", 2, "other", step=2)
    assert reported(state)[-1] == ("3", "2")
    cluster.apply_work(state, examples.removed("web"), 0)
    assert reported(state)[-1] == ("0", "0")


def test_budget_is_reported_when_a_client_creates_pods_that_wait() -> None:
    state = examples.new_state(startup_ms=0)
    apply_budget(state, {"matchLabels": {"app": "web"}})
    assert reported(state)[-1] == ("0", "0")
    waiting = manifests.deployment("web", 3, "default", requests={"cpu": "100"})
    unmanaged.apply(state, msgspec.json.encode(waiting), "uid", 0)
    assert cluster.advance(state, 0)
    assert reported(state)[-1] == ("0", "2")


def budget_of_pods(available: int) -> bytes:
    """Return the budget ``kept`` as a client writes it: so many pods of ``web`` must be available."""
    spec: Json = {"minAvailable": available, "selector": {"matchLabels": {"app": "web"}}}
    return msgspec.json.encode(
        manifests.manifest("policy/v1", "PodDisruptionBudget", "kept", "default", spec=spec)
    )


def may_be_evicted(state: MemberState) -> bool:
    """Whether the budgets of a member allow the eviction of the only pod of ``web``."""
    workload = state.workloads[examples.key_of("web")]
    (pod,) = lists.pods_of(state.spec.name, workload)
    return disruption_budgets.allows(state, lists.FoundPod(workload, pod))


def test_budget_of_a_client_protects_pods_until_it_is_deleted() -> None:
    state = examples.new_state(startup_ms=0)
    unmanaged.apply(state, budget_of_pods(1), "uid", 0)
    apply_pods(state, "web", 1, "web")
    cluster.advance(state, 0)
    assert not may_be_evicted(state)
    unmanaged.delete(state, examples.ref("kept", "PodDisruptionBudget"), 0)
    assert may_be_evicted(state)


def test_client_changes_a_budget_that_the_control_plane_released() -> None:
    state = examples.new_state(startup_ms=0)
    work = examples.applied("kept", None, kind="PodDisruptionBudget")
    cluster.apply_work(state, work, 0, template=templates.read(budget_of_pods(1)))
    apply_pods(state, "web", 1, "web")
    cluster.apply_work(state, msgspec.structs.replace(examples.removed("kept", preserved=True), key=KEY), 0)
    cluster.advance(state, 0)
    assert not may_be_evicted(state)
    unmanaged.apply(state, budget_of_pods(0), "uid", 0)
    assert may_be_evicted(state)


def test_changed_selector_selects_other_pods() -> None:
    state = examples.new_state(startup_ms=0)
    apply_pods(state, "web", 3, "web")
    apply_pods(state, "db", 2, "db")
    apply_budget(state, {"matchLabels": {"app": "web"}})
    assert reported(state)[-1] == ("3", "2")
    apply_budget(state, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, step=2)
    assert reported(state)[-1] == ("5", "4")
    apply_budget(state, {"matchLabels": {"app": "db"}}, step=3)
    assert reported(state)[-1] == ("2", "1")
    apply_pods(state, "web", 1, "web", step=2)
    assert reported(state) == []


def test_budget_is_unhealthy_while_too_few_pods_are_ready() -> None:
    state = examples.new_state(pods="2")
    apply_budget(state, {})
    apply_pods(state, "web", 4, "web")
    cluster.advance(state, 0)
    (last,) = [report.data for report in cluster.advance(state, 1_000) if report.key == KEY]
    assert isinstance(last, health.WorkloadReported)
    assert (last.values[HEALTHY], last.values[DESIRED], last.healthy) == ("2", "3", False)


def test_cost_of_a_change_does_not_grow_with_other_budgets() -> None:
    """A workload looks only at the budgets that may select its pods, a budget only at such pods."""
    state = examples.new_state(startup_ms=0, pods="10000", cpu="1000", memory="1000Gi")
    for index in range(50):
        work = examples.applied(f"kept{index}", None, kind="PodDisruptionBudget")
        cluster.apply_work(state, work, 0, template=budget({"matchLabels": {"app": f"web{index}"}}))
        apply_pods(state, f"web{index}", 1, f"web{index}")
    while cluster.advance(state, 0):
        pass
    apply_pods(state, "web7", 2, "web7", step=2)
    assert state.budgets is not None
    assert list(state.budgets.hints("default", LabelSelector(match_labels={"app": "web7"}))) == [
        examples.key_of("web7")
    ]
    assert list(state.budgets.budgets_of("default", {"app": "web7"})) == [
        examples.key_of("kept7", "PodDisruptionBudget")
    ]
