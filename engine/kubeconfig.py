"""The kubeconfig that a server leaves in its data directory, for kubectl and its kin; the user's own is left alone.

One context for the control plane, and one for each simulated member, whose API is behind the control plane's proxy.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from engine import private_files

FILE: Final = "kubeconfig"
CONTROL_PLANE: Final = "karmada-apiserver"
_USER: Final = "reballast"
_PROXY: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"


def write(directory: Path, url: str, token: str, authority: bytes, members: Sequence[str]) -> Path:
    """Writes the file, readable by its owner only, and gives its path."""
    servers = {CONTROL_PLANE: url, **{name: url + _PROXY.format(name) for name in members}}
    data = base64.b64encode(authority).decode()
    config: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": data}}
            for name, server in servers.items()
        ],
        "users": [{"name": _USER, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": _USER}} for name in servers],
        "current-context": CONTROL_PLANE,
    }
    path = directory / FILE
    # JSON is YAML too; kubectl rewrites it when a user changes the context.
    private_files.write(path, msgspec.json.format(msgspec.json.encode(config)) + b"\n")
    return path
