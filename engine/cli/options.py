"""Options shared by many commands."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

from cyclopts import Parameter, Token, validators

from engine.cli import failures, output
from engine.cli.client import Client
from events import limits, times

_T = TypeVar("_T")
POSITIVE: Final = validators.Number(gte=1)
Processes = Annotated[
    int | None,
    Parameter(help="Processes that share the work; by default one per processor.", validator=POSITIVE),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]
Kind = Annotated[
    str, Parameter(help="Kind as in kubectl: deploy, pp, clusters; or KIND/NAME.", show_default=False)
]
Name = Annotated[str, Parameter(help="Name of the object.", show_default=False)]
Names = Annotated[str, Parameter(help="Names of the objects.", show_default=False)]
Cluster = Annotated[str, Parameter(help="Name of the cluster.")]
Clusters = Annotated[str, Parameter(help="Names of the clusters.")]
MoreClusters = Annotated[str, Parameter(help="Names of further clusters.")]
Context = Annotated[str, Parameter(help="Context in the kubeconfig; by default the current one.")]
Horizon = Annotated[str, Parameter(help="Virtual time to look ahead: 30m, 1h30m, 90s.")]
PORT: Final = validators.Number(gte=0, lte=limits.PORT_MAX)
MetricsPort = Annotated[
    int | None,
    Parameter(
        help="Port for /metrics, /healthz and /readyz; 0 chooses a free one. By default no port is opened.",
        validator=PORT,
    ),
]
Host = Annotated[
    str,
    Parameter(help="Address to listen on; any but the loopback address is open to the network, without TLS."),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Server:
    """The server to connect to, and the form of the output."""

    data: Annotated[Path | None, Parameter(help="Data directory of the server (as given to `up`).")] = None
    json: Annotated[bool, Parameter(negative=(), help="Print JSON instead of a table.")] = False

    def client(self) -> Client:
        """A client of the server; raises Failure if there is no endpoint."""
        return Client(self.data)

    def show(self, value: _T, print_text: Callable[[_T], object]) -> None:
        """Print a value: as JSON with ``--json``, otherwise by ``print_text``."""
        (output.json if self.json else print_text)(value)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NamespaceOption:
    """The namespace of named objects."""

    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Namespace.")] = "default"


SERVER = Server()
NAMESPACE = NamespaceOption()


def instant(text: str, now_ms: int) -> str:
    """Convert ``10m`` or ``1h30m`` (ago) to RFC 3339; return any other text unchanged."""
    ago_ms = times.duration_ms(text)
    return text if ago_ms is None else times.to_text(max(now_ms - ago_ms, 0))


def read_duration(option: str, text: str) -> int:
    """Convert ``30m`` or ``1h30m`` to milliseconds; raises Failure for any other text."""
    found_ms = times.duration_ms(text)
    if found_ms is None:
        raise failures.usage(f"{option}: {text!r} is not a duration", "write it as 30m, 1h30m or 90s")
    return found_ms


def _read_as_of(_type: object, tokens: Sequence[Token]) -> str:
    return instant(tokens[0].value, time.time_ns() // 1_000_000)


AsOf = Annotated[
    str,
    Parameter(
        name="--as-of",
        converter=_read_as_of,
        help="Use an earlier state: some time ago (10m, 1h30m), at a time (RFC 3339), at a number of the log, or at "
        "a position (topic/partition/offset).",
    ),
]
