"""Options that many commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter, validators

from engine.cli.client import Client

Format = Literal["table", "wide", "yaml", "json", "name"]
PORT_MAX: Final = 65_535
MetricsPort = Annotated[
    int | None,
    Parameter(
        help="Port for /metrics, /healthz and /readyz; none is opened without it, 0 takes a free one.",
        validator=validators.Number(gte=0, lte=PORT_MAX),
    ),
]
Host = Annotated[
    str, Parameter(help="Address to listen on; what is not the loopback is open to the network, without TLS.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Server:
    """Which server is spoken to."""

    data: Annotated[Path | None, Parameter(help="Data directory of the server (as given to `up`).")] = None
    json: Annotated[bool, Parameter(negative=(), help="Print JSON instead of a table.")] = False

    def client(self) -> Client:
        """A connection to it; raises Failure where there is none."""
        return Client(self.data)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """The namespace that is meant."""

    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Namespace.")] = "default"


SERVER = Server()
PLACE = Place()
AsOf = Annotated[
    str,
    Parameter(
        name="--as-of",
        help="As it was at a time (RFC 3339), at a number of the log, or at a position: topic/partition/offset.",
    ),
]
