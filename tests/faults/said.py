"""The objects that writers send under faults: each write has a unique text."""

from collections.abc import Sequence
from typing import Final

from events.json_values import Json

COUNT: Final = "example.com/count"
"""The annotation that carries the text."""

TAINT: Final = "fault"
REPLICAS_MAX: Final = 6
_APPS: Final = "apps/v1"

POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
"""


def deployment(name: str, replicas: int, text: str) -> Json:
    """Return a Deployment."""
    return {
        "apiVersion": _APPS,
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "annotations": {COUNT: text}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


def rebalancer(name: str, deployments: Sequence[str], text: str) -> Json:
    """Return a rebalancer of Deployments."""
    workloads = [
        {"apiVersion": _APPS, "kind": "Deployment", "namespace": "default", "name": each}
        for each in deployments
    ]
    return {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": name, "annotations": {COUNT: text}},
        "spec": {"workloads": workloads},
    }
