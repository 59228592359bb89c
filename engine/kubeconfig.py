"""The kubeconfig that a server leaves in its data directory, for kubectl and its kin; the user's own is left alone.

One context for the control plane, and one for each simulated member, whose API is behind the control plane's proxy.
"""

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

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
    path, new = directory / FILE, directory / f"{FILE}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        # JSON is YAML too; kubectl writes it anew when a user changes the context.
        file.write(msgspec.json.format(msgspec.json.encode(config)) + b"\n")
    new.rename(path)
    return path
