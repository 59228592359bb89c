"""Request bodies of the Kubernetes API benchmark, and minimal parsing of responses."""

import re
from typing import Final

import msgspec

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
BINDINGS: Final = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings"
CREATING: Final = "?fieldManager=kubectl-create&fieldValidation=Strict"

_CLUSTERS: Final = b'"clusters":[{'
_NAMED: Final = re.compile(rb'"resource":\{[^{}]*"name":"([^"]+)"')
_STAMP: Final = re.compile(rb'"data":\{"began":"([\d.]+)"')


def name(index: int) -> str:
    return f"bench-{index}"


def deployment(called: str) -> bytes:
    """A Deployment as ``kubectl create`` sends it."""
    container: dict[str, object] = {"name": "nginx", "image": "nginx", "resources": {}}
    template: dict[str, object] = {
        "metadata": {"labels": {"app": called}, "creationTimestamp": None},
        "spec": {"containers": [container]},
    }
    return msgspec.json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": called, "creationTimestamp": None, "labels": {"app": called}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": called}},
                "template": template,
                "strategy": {},
            },
            "status": {},
        }
    )


def stamped(index: int, began_s: float) -> bytes:
    """A ConfigMap with the time of its creation."""
    metadata = {"name": f"told-{index}"}
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"began": f"{began_s:.6f}"},
    }
    return msgspec.json.encode(value)


def watch(path: str, version: str) -> str:
    """The path of a watch from a resourceVersion on."""
    return f"{path}?watch=true&resourceVersion={version}"


def version_of(listed: bytes) -> str:
    """The resourceVersion of a list."""
    document = msgspec.json.decode(listed, type=_List)
    return document.metadata.version


def decided(line: bytes) -> bytes:
    """The workload of a binding in a watch line, if it has clusters; empty if not."""
    match = _NAMED.search(line) if _CLUSTERS in line else None
    return match[1] if match else b""


def stamp_of(line: bytes) -> float | None:
    """The creation time that ``stamped`` put into a ConfigMap in a watch line; None for other lines."""
    match = _STAMP.search(line)
    return float(match[1]) if match else None


class _Metadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")


class _List(msgspec.Struct):
    metadata: _Metadata
