"""Random pod templates."""

import random
from typing import Final

from events.json_values import Json

_IMAGES: Final = ("nginx", "nginx:1.19", "reg.io/lib/nginx:1.2", f"reg.io:5000/a/b@sha256:{'a' * 64}")
_RESOURCES: Final[tuple[Json, ...]] = (
    {},
    {"requests": {"cpu": "100m", "memory": "128Mi"}},
    {"requests": {"cpu": "1"}},
    {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m", "memory": "1Gi"}},
    {"requests": {"cpu": "0"}},
)
_PROJECTED: Final = [{"configMap": {"name": "configmap0"}}, {"secret": {"name": "secret1"}}]
_VOLUMES: Final[tuple[tuple[float, Json], ...]] = (
    (0.2, {"name": "v", "configMap": {"name": "configmap0"}}),
    (0.15, {"name": "w", "secret": {"secretName": "secret0"}}),
    (0.1, {"name": "u", "persistentVolumeClaim": {"claimName": "persistentvolumeclaim0"}}),
    (0.1, {"name": "t", "projected": {"sources": _PROJECTED}}),
)
"""Volumes, and how many pods have each."""


def pod_template(rng: random.Random) -> Json:
    """Return a pod template that may need nodes, resources, and objects of its namespace."""
    container: Json = {"name": "c", "image": rng.choice(_IMAGES), "resources": rng.choice(_RESOURCES)}
    if rng.random() < 0.4:
        container["command"] = ["sh", "-c", "a"]
    if rng.random() < 0.4:
        container["args"] = ["-x", "-y=1", "-z"]
    if rng.random() < 0.1:
        container["envFrom"] = [{"secretRef": {"name": "secret0"}}, {"configMapRef": {"name": "configmap1"}}]
    containers = [container]
    if rng.random() < 0.25:
        containers.append({"name": "d", "image": "busybox:1"})
    spec: Json = {"containers": containers}
    volumes = [volume for share, volume in _VOLUMES if rng.random() < share]
    if volumes:
        spec["volumes"] = volumes
    if rng.random() < 0.15:
        spec["serviceAccountName"] = "serviceaccount0"
    if rng.random() < 0.1:
        spec["imagePullSecrets"] = [{"name": "secret0"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.15:
        spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
    return {"metadata": {"labels": {"pod": "p"}}, "spec": spec}
