"""A valid object of each kind, and copies of it with changes."""

import copy
from typing import Any

from events import kube_objects
from events.validation import manifests
from tests.builders.manifests import manifest, raw, rebalancer, selector, taint_policy

POLICY = manifest(
    "policy.karmada.io/v1alpha1",
    "PropagationPolicy",
    "nginx-propagation",
    "default",
    spec={"resourceSelectors": [selector("nginx")]},
)
REBALANCER = rebalancer("demo", selector("foo", namespace="default"))
DEPLOYMENT = manifest(
    "apps/v1",
    "Deployment",
    "foo",
    "default",
    metadata={"labels": {"app.kubernetes.io/name": "foo"}},
    spec={
        "replicas": 3,
        "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "10m", "memory": "10Mi"}}}]}},
    },
)
INTERPRETER = manifest(
    "config.reballast.io/v1alpha1",
    "ReplicaInterpreter",
    "kafkas",
    spec={"target": {"apiVersion": "example.io/v1", "kind": "Kafka"}, "replicasPath": "spec.size"},
)
TAINT_POLICY = taint_policy("not-ready", "NoExecute", "False", on=("member1",))


def refusal(value: dict[str, object]) -> str:
    """Return the refusal of an object; empty if it is valid."""
    encoded = raw(value)
    try:
        manifests.check(kube_objects.read_head(encoded), encoded)
    except kube_objects.Refusal as error:
        return f"{error.field}: {error.reason}"
    return ""


def changed(value: dict[str, object], path: str, new: object) -> dict[str, object]:
    """Return a copy with another value at a path of names and indexes: ``spec.workloads.0.name``."""
    copied = copy.deepcopy(value)
    at: Any = copied
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        at = at[step] if isinstance(step, int) else at.setdefault(step, {})
    at[last] = new
    return copied


def placed(placement: object) -> dict[str, object]:
    return changed(POLICY, "spec.placement", placement)


def toleration(**fields: object) -> dict[str, object]:
    return {"clusterTolerations": [fields]}
