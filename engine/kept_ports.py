"""The ports that a data directory's server used last: open pages and kubeconfigs go on when it uses them again."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine import private_files

_FILE: Final = "ports.json"
_PORT_MAX: Final = 65_535


class Ports(Struct, frozen=True, kw_only=True):
    """The port of the query API and that of the Kubernetes API; 0 for one that is not known."""

    port: int = 0
    kube_port: int = 0


def read(directory: Path) -> Ports:
    """The ports that were kept; none where the file is absent or damaged, since any port will do then."""
    try:
        found = msgspec.json.decode((directory / _FILE).read_bytes(), type=Ports)
    except (OSError, msgspec.MsgspecError):
        return Ports()
    return found if all(0 <= each <= _PORT_MAX for each in (found.port, found.kube_port)) else Ports()


def keep(directory: Path, ports: Ports) -> None:
    """Keep the ports for the next start."""
    private_files.write(directory / _FILE, msgspec.json.encode(ports))
