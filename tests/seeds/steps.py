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
        "tutorial 2": "a NoExecute taint on member1: all replicas in member2; untainted, nothing moves back",
        "tutorial 3": "a WorkloadRebalancer is created",
        "tutorial 4": "its status: Successful, with times and generation",
        "tutorial 5": "2 replicas are back in member1, 1 stays in member2; the event of the scheduler",
        "tutorial 6": "ttlSecondsAfterFinished is set to 300 by an edit",
    },
    "Guide: Workload Rebalance (English, Chinese)": {
        "rebalance scenario 1": "after a failover, replicas return to the recovered cluster",
        "rebalance scenario 2": "replicas crowded into one cluster spread again once there is capacity",
        "rebalance scenario 3": "Aggregated: replicas gather once one cluster has capacity for all",
        "rebalance scenario 4": "replicas go back from the backup cluster to the primary",
        "rebalance one": "one workload: Successful",
        "rebalance not found": "no binding: Failed with ReferencedBindingNotFound",
        "rebalance retrying": "while it is retried: no finishTime, no result, no reason",
        "rebalance batch": "Deployment, ConfigMap, ClusterRole; observedWorkloads in order",
        "rebalance edit": "demo-deploy-1 and -2 edited to -3: workloads kept, removed and added in the status",
        "rebalance ttl set": "deleted that many seconds after it finished",
        "rebalance ttl unset": "not deleted",
        "rebalance ttl zero": "deleted as soon as it finished",
    },
    "Guide: resource propagation (Chinese)": {
        "propagate create": "a policy for member1, then nginx; the table",
        "propagate order": "policy and Deployment may be created in either order",
        "propagate pods": "`get pod -l app=nginx`",
        "propagate update policy": "the policy names member2: the Deployment and its pod move",
        "propagate update deployment": "2 replicas: the table, the first pod stays",
        "propagate delete policy": "propagated objects stay",
        "propagate delete deployment": "deleted from the members too",
        "affinity labelSelector": "matchLabels, matchExpressions",
        "affinity fieldSelector": "provider In, region NotIn",
        "affinity clusterNames": "the named clusters",
        "affinity exclude": "all clusters but these",
        "affinity absent": "all clusters are candidates",
        "affinity groups": "local clusters first, clouds only if these do not suffice",
        "affinity failover": "primary, and backup when that fails",
        "affinity none fits": "no group fits: scheduled nowhere",
        "affinity both": "clusterAffinity beside clusterAffinities is refused",
        "taint NoSchedule": "no new workloads; running ones stay; the value is replaced",
        "taint NoExecute": "running workloads are evicted too",
        "taint tolerated": "the document's toleration, `Effect` with a capital letter",
        "spread edit region": "`edit cluster/member1` sets its region",
        "spread by region": "one cluster in each of two regions",
        "spread and static weights": "static weights: the constraints are ignored",
        "spread without cluster": "a region constraint needs a cluster constraint",
        "replicas Duplicated": "each cluster has all replicas",
        "replicas Divided": "the replicas of all clusters add up to the desired number",
        "replicas Aggregated": "in as few clusters as have the capacity",
        "replicas static weights": "each cluster has half",
        "replicas dynamic weights": "capacity for 6, 12, 18: 12 replicas are 2, 4, 6",
        "replicas dynamic before static": "the static list is ignored if dynamicWeight is set",
        "replicas default weights": "no weightPreference: equal shares",
        "priority scopes": "a PropagationPolicy takes precedence over a ClusterPropagationPolicy",
        "priority explicit": "priority 2 before 1 before none",
        "priority implicit": "name before labels before all",
        "priority explicit then implicit": "equal numbers: name before labels",
        "priority alphabetical": "all equal: a before b",
        "suspension all": "updates reach no member",
        "suspension clusters": "updates reach all other members",
        "suspension resumed": "members get the newest state, and updates again",
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
