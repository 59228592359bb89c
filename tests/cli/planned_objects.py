"""Objects that plans are about, and what a server shows of them."""

import json
from pathlib import Path
from typing import Any, Final

from tests.cli.servers import Shell

OBJECTS: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 9
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 100m}}}]}
"""
FAILING: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: failing}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False", Unknown]}]
  taints: [{key: failing, effect: NoExecute}]
"""


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def placed(shell: Shell, namespace: str = "default") -> dict[str, int]:
    """Return the clusters of the Deployment, with their replicas; none before it has a binding."""
    bindings: Any = json.loads(shell("get", "rb", "-n", namespace, "-o", "json"))["items"]
    none: Any = {}
    spec = next(
        (binding["spec"] for binding in bindings if binding["metadata"]["name"] == "web-deployment"), none
    )
    return {target["name"]: target["replicas"] for target in spec.get("clusters", [])}


def ready(shell: Shell) -> int:
    """Return the ready replicas of the Deployment, in all clusters."""
    return int(
        json.loads(shell("get", "deploy", "web", "-o", "json")).get("status", {}).get("readyReplicas", 0)
    )


def prediction(shell: Shell, *words: str) -> Any:  # noqa: ANN401  # JSON
    """Return the prediction of a change that has an effect."""
    return json.loads(shell("plan", *words, "--json", code=2))["prediction"]


def run(shell: Shell, objects: str, replicas: int = 9) -> None:
    """Apply objects and wait until all replicas of the Deployment are ready."""
    shell("apply", "-f", objects)
    shell.until_true(lambda: sum(placed(shell).values()) == replicas == ready(shell))
