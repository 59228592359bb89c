"""The objects that writers send under faults: each write has a unique text."""

from collections.abc import Sequence
from typing import Final

from events.json_values import Json
from tests.builders import manifests

COUNT: Final = "example.com/count"
"""The annotation that carries the text."""

TAINT: Final = "fault"
REPLICAS_MAX: Final = 6

POLICY: Final = manifests.policy("all", {"replicaScheduling": manifests.DYNAMIC})


def deployment(name: str, replicas: int, text: str) -> Json:
    return manifests.deployment(name, replicas, "default", metadata=_annotated(text))


def rebalancer(name: str, deployments: Sequence[str], text: str) -> Json:
    """Return a rebalancer of Deployments."""
    workloads = [manifests.selector(deployment, namespace="default") for deployment in deployments]
    return manifests.rebalancer(name, *workloads, metadata=_annotated(text))


def _annotated(text: str) -> Json:
    return {"annotations": {COUNT: text}}
