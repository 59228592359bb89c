"""Ports that a data directory's server used last. Their reuse keeps web pages and kubeconfigs valid after a restart."""

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from engine import private_files
from events import limits

_FILE: Final = "ports.json"
_Port: TypeAlias = Annotated[int, Meta(ge=0, le=limits.PORT_MAX)]


class Ports(Struct, frozen=True, kw_only=True):
    """Ports of the query API and the Kubernetes API; 0 if unknown."""

    port: _Port = 0
    kube_port: _Port = 0


def read(directory: Path) -> Ports:
    """Return the stored ports; both are 0 if the file is missing or damaged."""
    try:
        return msgspec.json.decode((directory / _FILE).read_bytes(), type=Ports)
    except (OSError, msgspec.MsgspecError):
        return Ports()


def keep(directory: Path, ports: Ports) -> None:
    private_files.write(directory / _FILE, msgspec.json.encode(ports))
