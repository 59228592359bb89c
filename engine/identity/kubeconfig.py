"""The kubeconfig in a server's data directory, for kubectl and similar clients; the user's own file is not changed.

It has one context for the control plane and one for each simulated member, reached through the control
plane's proxy.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from engine import private_files

FILE: Final = "kubeconfig"
CONTROL_PLANE: Final = "karmada-apiserver"
_USER: Final = "reballast"
PROXY: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"


def of_server(url: str, authority: bytes) -> str:
    """Return a kubeconfig with the server and its authority, but without a user, for the ConfigMap ``cluster-info``."""
    return msgspec.json.format(msgspec.json.encode(_of_servers({"": url}, authority))).decode() + "\n"


def _of_servers(servers: Mapping[str, str], authority: bytes) -> dict[str, object]:
    data = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": data}}
            for name, server in servers.items()
        ],
    }


def write(directory: Path, url: str, token: str, authority: bytes, members: Sequence[str]) -> Path:
    """Write the kubeconfig to a file that only its owner can read; return the path."""
    servers = {CONTROL_PLANE: url, **{name: url + PROXY.format(name) for name in members}}
    config = {
        **_of_servers(servers, authority),
        "users": [{"name": _USER, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": _USER}} for name in servers],
        "current-context": CONTROL_PLANE,
    }
    path = directory / FILE
    # JSON is valid YAML; kubectl rewrites the file when a user changes the context.
    private_files.write(path, msgspec.json.format(msgspec.json.encode(config)) + b"\n")
    return path
