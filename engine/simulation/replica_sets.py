"""Manifests of the ReplicaSets of Deployments."""

from typing import Final

from engine.works.templates import HASH_LABEL
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

REVISION: Final = "deployment.kubernetes.io/revision"


def name(deployment: str, digest: str) -> str:
    """Return the name of a Deployment's ReplicaSet; ``digest`` is that of its pod template."""
    return f"{deployment}-{digest}"


def manifest(deployment: KubeObject, template: Json, digest: str, replicas: int, revision: int) -> KubeObject:
    """Return the ReplicaSet of a Deployment for one of its pod templates."""
    metadata, selector = object_at(template, "metadata"), deployment.object_at("spec", "selector")
    labels = {**object_at(metadata, "labels"), HASH_LABEL: digest}
    matched = {**object_at(selector, "matchLabels"), HASH_LABEL: digest}
    return KubeObject(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name(deployment.name, digest),
                "namespace": deployment.namespace,
                "labels": labels,
                "annotations": {REVISION: str(revision)},
            },
            "spec": {
                "replicas": replicas,
                "selector": {**selector, "matchLabels": matched},
                "template": {**template, "metadata": {**metadata, "labels": labels}},
            },
        }
    )
