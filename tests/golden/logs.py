"""Golden logs: the SQLite files that each release wrote for the histories."""

import gzip
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

DIRECTORY: Final = Path(__file__).parent / "logs"
_HISTORIES: Final = Path(__file__).parent / "histories"


class Placement(Struct, frozen=True, order=True):
    """The placement of a binding: replicas by cluster, 0 for workloads without replicas."""

    kind: str
    namespace: str
    name: str
    clusters: dict[str, int]


class _Target(Struct):
    name: str
    replicas: int = 0


class _Spec(Struct):
    clusters: list[_Target] = []


class _Metadata(Struct):
    name: str
    namespace: str = ""


class Binding(Struct):
    """The compared fields of a ResourceBinding or ClusterResourceBinding."""

    kind: str
    metadata: _Metadata
    spec: _Spec


class BindingList(Struct):
    """Bindings as ``reballast get --json`` prints them."""

    items: list[Binding]


def placement_of(binding: Binding) -> Placement:
    """Return the clusters of a binding."""
    clusters = {target.name: target.replicas for target in binding.spec.clusters}
    return Placement(binding.kind, binding.metadata.namespace, binding.metadata.name, clusters)


def histories() -> list[Path]:
    """Return the scripts that each release plays."""
    return sorted(_HISTORIES.glob("*.yaml"))


def recorded() -> list[Path]:
    """Return the golden logs of all releases."""
    return sorted(DIRECTORY.glob("*/*.sqlite.gz"))


def unpack(log: Path, data: Path) -> None:
    """Create a data directory with this log."""
    data.mkdir(mode=0o700)
    (data / "log.sqlite").write_bytes(gzip.decompress(log.read_bytes()))


def shown_with(log: Path) -> list[Placement]:
    """Return the bindings that the release showed at the end of the history."""
    shown = log.with_name(log.name.replace(".sqlite.gz", ".bindings.json"))
    return msgspec.json.decode(shown.read_bytes(), type=list[Placement])
