"""Credentials of a cluster that joins: a bootstrap token, and a kubectl configured from ``cluster-info`` only."""

import json
from pathlib import Path
from typing import cast

from events.json_values import Json, at
from tests.kubectl.commands import Kubectl

SECRET = "0123456789abcdef"  # noqa: S105  # of tokens that only the tests accept
GROUP = "system:bootstrappers:karmada:default-cluster-token"


def token_secret(name: str, **data: str) -> str:
    """The Secret of a bootstrap token as kubectl applies it; ``data`` replaces fields, with ``_`` for ``-``."""
    values = {
        "token-id": name,
        "token-secret": SECRET,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": GROUP,
        **{key.replace("_", "-"): value for key, value in data.items()},
    }
    value: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{name}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": values,
    }
    return json.dumps(value)


def published(kubectl: Kubectl) -> Json:
    """The kubeconfig in ``cluster-info``."""
    info = kubectl.json("configmap", "cluster-info", "-n", "kube-public")
    return cast("Json", json.loads(str(at(info, "data", "kubeconfig"))))


def joining(kubectl: Kubectl, directory: Path, home_directory: Path, credentials: Json) -> Kubectl:
    """Return a kubectl with these credentials; it has the address and CA of the server from ``cluster-info``."""
    config = published(kubectl)
    config["users"] = [{"name": "joining", "user": credentials}]
    config["contexts"] = [{"name": "joining", "context": {"cluster": "", "user": "joining"}}]
    config["current-context"] = "joining"
    path = directory / f"joining-{len(list(directory.iterdir()))}"
    path.write_text(json.dumps(config))
    return Kubectl(path, home_directory)
