"""PodDisruptionBudgets of a member: their statuses follow the pods that they select."""

from typing import TypedDict

from engine.simulation.budget_index import BudgetIndex
from engine.simulation.lists import FoundPod
from engine.simulation.state import UNMANAGED, MemberState, Workload
from engine.works.budgets import Budget
from events.json_values import Json


def record(state: MemberState, workload: Workload) -> None:
    """Index a workload: as a budget if it is one, and by the labels of its pods if it has replicas."""
    budget = workload.template.budget
    if budget is not None:
        _index(state).add_budget(workload.key, workload.ref.namespace, budget)
    if state.budgets is not None and workload.replicas is not None:
        state.budgets.add_workload(workload.key, workload.ref.namespace, workload.template.labels)


def forget(state: MemberState, workload: Workload) -> None:
    """Remove a workload from the index if it is a budget."""
    budget = workload.template.budget
    if budget is not None and state.budgets is not None:
        state.budgets.remove_budget(workload.key, workload.ref.namespace, budget)


def touch(state: MemberState, workload: Workload) -> None:
    """Queue a report of the budgets that select the pods of a workload."""
    if state.budgets is not None and workload.replicas is not None:
        keys = state.budgets.budgets_of(workload.ref.namespace, workload.template.labels)
        state.dirty.update(dict.fromkeys(keys))


def record_unmanaged(state: MemberState, key: str, namespace: str, budget: Budget | None) -> None:
    """Index an object that clients of the member wrote if it is a budget; ``budget`` is None for other objects."""
    forget_unmanaged(state, key, namespace)
    if budget is not None:
        _index(state).add_budget(UNMANAGED + key, namespace, budget)


def forget_unmanaged(state: MemberState, key: str, namespace: str) -> None:
    if state.budgets is not None:
        state.budgets.discard_budget(UNMANAGED + key, namespace)


class BudgetStatus(TypedDict):
    """The status of a budget: counts of the pods that it selects, and how many of them may be disrupted."""

    currentHealthy: int
    desiredHealthy: int
    disruptionsAllowed: int
    expectedPods: int
    observedGeneration: int


def allows(state: MemberState, found_pod: FoundPod) -> bool:
    """Whether the budgets that select a pod allow its eviction; as in Kubernetes, they protect only pods that run."""
    namespace = found_pod.workload.ref.namespace
    if state.budgets is None or not found_pod.pod.ready:
        return True
    budgets = state.budgets.budgets_with(namespace, found_pod.workload.template.labels)
    return all(_counts(state, namespace, budget)["disruptionsAllowed"] != 0 for _, budget in budgets)


def status(state: MemberState, workload: Workload, budget: Budget) -> BudgetStatus:
    return _counts(state, workload.ref.namespace, budget)


def _counts(state: MemberState, namespace: str, budget: Budget) -> BudgetStatus:
    selected = _selected(state, namespace, budget)
    expected = sum(workload.admitted + workload.pending for workload in selected)
    healthy, desired = sum(workload.ready for workload in selected), budget.desired(expected)
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(healthy - desired, 0) if expected else 0,
        "expectedPods": expected,
        "observedGeneration": 1,
    }


def is_met(status: Json) -> bool:
    """Return whether at least as many pods are healthy as the budget requires."""
    return int(str(status["currentHealthy"])) >= int(str(status["desiredHealthy"]))


def _selected(state: MemberState, namespace: str, budget: Budget) -> list[Workload]:
    hints = _index(state).hints(namespace, budget.selector)
    selected: list[Workload] = []
    for key in list(hints):
        workload = state.workloads.get(key)
        if workload is not None and budget.selector.matches(workload.template.labels):
            selected.append(workload)
        elif workload is None:
            del hints[key]
    return selected


def _index(state: MemberState) -> BudgetIndex:
    """Return the index. It is built when the first budget is added, since most members have no budget."""
    if state.budgets is None:
        state.budgets = BudgetIndex()
        for workload in state.workloads.values():
            record(state, workload)
    return state.budgets
