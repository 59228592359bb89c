"""The steps of the documents, and the tests that show them.

The table in README.md is generated from this; a test checks that it is complete and up to date. The documents
are Karmada's: a tutorial and a guide, each in English and in Chinese with the same steps, and a guide in
Chinese.
"""

import types
from collections.abc import Callable
from typing import Final, TypeVar

DOCUMENTS: Final[dict[str, dict[str, str]]] = {
    "Tutorial: Workload Rebalancer (English, Chinese)": {
        "tutorial 1": "a Deployment and a policy; `get deploy foo` shows 2 replicas in member1, 1 in member2",
        "tutorial 2": "a NoExecute taint moves all replicas to member2; they stay there after its removal",
        "tutorial 3": "a WorkloadRebalancer is created",
        "tutorial 4": "the status of the rebalancer: Successful, with times and generation",
        "tutorial 5": "2 replicas are back in member1, 1 stays in member2; the scheduler's Event",
        "tutorial 6": "an edit sets ttlSecondsAfterFinished to 300",
    },
    "Guide: Workload Rebalance (English, Chinese)": {
        "rebalance scenario 1": "after a failover, replicas return to the recovered cluster",
        "rebalance scenario 2": "replicas crowded into one cluster spread again once other clusters have capacity",
        "rebalance scenario 3": "Aggregated replicas move to one cluster once it has capacity for all",
        "rebalance scenario 4": "replicas return from the backup cluster to the primary",
        "rebalance one": "a rebalancer of one workload: Successful",
        "rebalance not found": "a workload without binding: Failed with ReferencedBindingNotFound",
        "rebalance retrying": "a workload that is being retried has no finishTime, result or reason",
        "rebalance batch": "Deployment, ConfigMap and ClusterRole; observedWorkloads in order",
        "rebalance edit": "demo-deploy-1 and -2 edited to -3: the status keeps, removes and adds workloads",
        "rebalance ttl set": "the rebalancer is deleted that many seconds after it finished",
        "rebalance ttl unset": "the rebalancer is not deleted",
        "rebalance ttl zero": "the rebalancer is deleted as soon as it finished",
    },
    "Guide: resource propagation (Chinese)": {
        "propagate create": "a policy for member1, then nginx; the printed table",
        "propagate order": "policy and Deployment can be created in either order",
        "propagate pods": "`get pod -l app=nginx`",
        "propagate update policy": "the policy names member2: the Deployment and its pod move",
        "propagate update deployment": "2 replicas; the printed table; the first pod stays",
        "propagate delete policy": "objects that it propagated stay",
        "propagate delete deployment": "the Deployment is deleted from the members too",
        "affinity labelSelector": "matchLabels, matchExpressions",
        "affinity fieldSelector": "provider In, region NotIn",
        "affinity clusterNames": "only the named clusters",
        "affinity exclude": "all clusters except these",
        "affinity absent": "all clusters are candidates",
        "affinity groups": "local clusters first, clouds only if these do not suffice",
        "affinity failover": "the primary group, and the backup group when the primary fails",
        "affinity none fits": "no group fits: the workload is not scheduled",
        "affinity both": "clusterAffinity beside clusterAffinities is refused",
        "taint NoSchedule": "new workloads avoid the cluster, running ones stay; a new value replaces the old one",
        "taint NoExecute": "running workloads are evicted too",
        "taint tolerated": "the document's toleration, `Effect` with a capital letter",
        "spread edit region": "`edit cluster/member1` sets its region",
        "spread by region": "one cluster in each of two regions",
        "spread and static weights": "with static weights, spread constraints are ignored",
        "spread without cluster": "a region constraint needs a cluster constraint",
        "replicas Duplicated": "each cluster has all replicas",
        "replicas Divided": "the replicas of all clusters add up to the desired number",
        "replicas Aggregated": "in as few clusters as have the capacity",
        "replicas static weights": "each cluster has half",
        "replicas dynamic weights": "with capacity for 6, 12 and 18, 12 replicas become 2, 4 and 6",
        "replicas dynamic before static": "static weights are ignored if dynamicWeight is set",
        "replicas default weights": "without weightPreference, clusters get equal shares",
        "priority scopes": "a PropagationPolicy takes precedence over a ClusterPropagationPolicy",
        "priority explicit": "a policy of priority 2 wins over 1, and 1 over none",
        "priority implicit": "a selector by name wins over labels, and labels over an empty selector",
        "priority explicit then implicit": "at equal priority, a name wins over labels",
        "priority alphabetical": "if all is equal, the first name in alphabetical order wins",
        "suspension all": "updates reach no member",
        "suspension clusters": "updates reach all other members",
        "suspension resumed": "members get the newest state, and later updates",
    },
}

_Test = TypeVar("_Test", bound=types.FunctionType)
_tests: Final[dict[str, set[str]]] = {}


def shows(*steps: str) -> Callable[[_Test], _Test]:
    """Register the decorated test for these steps; raises KeyError for an unknown step."""

    def register(test: _Test) -> _Test:
        module = test.__module__.rpartition(".")[2]
        for step in steps:
            if not any(step in known for known in DOCUMENTS.values()):
                raise KeyError(step)
            _tests.setdefault(step, set()).add(f"`{module}.{test.__name__}`")
        return test

    return register


def untested() -> list[str]:
    """Return the steps without an imported test."""
    return [step for known in DOCUMENTS.values() for step in known if step not in _tests]


def table() -> str:
    """Return the table of all steps with their tests, in Markdown."""
    lines: list[str] = []
    for document, known in DOCUMENTS.items():
        lines += [f"### {document}", "", "| step | what it shows | test |", "| --- | --- | --- |"]
        lines += [
            f"| {step} | {words} | {', '.join(sorted(_tests.get(step, ())))} |"
            for step, words in known.items()
        ]
        lines.append("")
    return "\n".join(lines)
