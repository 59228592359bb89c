"""Index of a member's PodDisruptionBudgets and of its workloads with pods, by the labels of the pods.

It finds the budgets of a workload and the workloads of a budget without a scan of all objects. An entry of a workload
may be outdated, because the workload was removed or its labels have changed.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.kubeapi.values.selectors import LabelSelector, Operator
from engine.works.budgets import Budget

LabelKey = tuple[str, str, str]
"""Namespace, label name and label value; name and value are empty for the whole namespace."""

_ANY: Final[tuple[str, str]] = ("", "")


class BudgetIndex(Struct, kw_only=True):
    """Keys of budgets and workloads by label.

    A budget has one entry, for one label that its selector requires; a workload has one for each label of its pods.
    """

    budgets: dict[LabelKey, dict[str, Budget]] = {}
    workloads: dict[LabelKey, dict[str, None]] = {}

    def add_budget(self, key: str, namespace: str, budget: Budget) -> None:
        self.budgets.setdefault(_label_key(namespace, budget.selector), {})[key] = budget

    def remove_budget(self, key: str, namespace: str, budget: Budget) -> None:
        self.budgets.get(_label_key(namespace, budget.selector), {}).pop(key, None)

    def add_workload(self, key: str, namespace: str, labels: Mapping[str, str]) -> None:
        for label in _label_keys(namespace, labels):
            self.workloads.setdefault(label, {})[key] = None

    def discard_budget(self, key: str, namespace: str) -> None:
        """Remove a budget whose selector is unknown: search all labels of its namespace for its key."""
        for label, budgets in self.budgets.items():
            if label[0] == namespace:
                budgets.pop(key, None)

    def budgets_of(self, namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
        """Yield the keys of the budgets that select pods with these labels."""
        for key, _ in self.budgets_with(namespace, labels):
            yield key

    def budgets_with(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[str, Budget]]:
        """Yield the budgets that select pods with these labels, with their keys."""
        for label in _label_keys(namespace, labels):
            for key, budget in self.budgets.get(label, {}).items():
                if budget.selector.matches(labels):
                    yield key, budget

    def hints(self, namespace: str, selector: LabelSelector) -> dict[str, None]:
        """Return keys of workloads that a selector may select. The caller removes outdated keys from this dict."""
        return self.workloads.get(_label_key(namespace, selector), {})


def _label_keys(namespace: str, labels: Mapping[str, str]) -> Iterator[LabelKey]:
    yield (namespace, *_ANY)
    for label in labels.items():
        yield (namespace, *label)


def _label_key(namespace: str, selector: LabelSelector) -> LabelKey:
    """Return the namespace, key and value of the first label for which the selector allows only one value.

    Key and value are empty if there is no such label.
    """
    for requirement in selector.requirements():
        if requirement.operator == Operator.IN and len(requirement.values) == 1:
            return (namespace, requirement.key, requirement.values[0])
    return (namespace, *_ANY)
