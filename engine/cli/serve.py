"""Commands that run until they are stopped: ``up`` (all in one process), and the parts of a deployment on Kafka."""

import errno
import math
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators
from msgspec import structs

from engine import broken_pipes, cli
from engine.cli import failures, log_checkpoint, next_commands, options, output, server_location
from engine.http import incoming_requests, server, sessions
from engine.identity import certificates
from engine.identity.endpoint import Endpoint
from engine.karmada.default_tolerations import TolerationSeconds
from engine.log import port as logs
from engine.log.kafka.address import AddressError, parse
from engine.process import control_plane, health_endpoint
from engine.simulation import defaults
from projections import store

LOG_VARIABLE: Final = "REBALLAST_LOG"
HOSTS_VARIABLE: Final = "REBALLAST_ALLOWED_HOSTS"
"""Host names separated by spaces, as an alternative to ``--allowed-host``."""

Data = Annotated[Path | None, Parameter(help="Directory for all data; created if it does not exist.")]
Port = Annotated[
    int,
    Parameter(
        help="Port to listen on; 0 uses the port of the last run, or a free one.", validator=options.PORT
    ),
]
KubePort = Annotated[
    int,
    Parameter(
        help="Port of the Kubernetes API; 0 uses the port of the last run, or a free one.",
        validator=options.PORT,
    ),
]
AsJson = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print the server's addresses as JSON when it is ready.")
]
Members = Annotated[bool, Parameter(help="Run three simulated member clusters.")]
_SECONDS: Final = validators.Number(gte=0, lte=2**31 - 1)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Tolerated:
    """Default tolerations of failing clusters, for policies that set none."""

    default_not_ready_toleration_seconds: Annotated[
        int | None,
        Parameter(
            help="Toleration in seconds for policies that do not tolerate cluster.karmada.io/not-ready:NoExecute.",
            validator=_SECONDS,
        ),
    ] = None
    default_unreachable_toleration_seconds: Annotated[
        int | None,
        Parameter(help="Likewise for cluster.karmada.io/unreachable:NoExecute.", validator=_SECONDS),
    ] = None

    def seconds(self) -> TolerationSeconds:
        """Both options as ``TolerationSeconds``, the form that the server takes."""
        return TolerationSeconds(
            not_ready=self.default_not_ready_toleration_seconds,
            unreachable=self.default_unreachable_toleration_seconds,
        )


_TOLERATED: Final = Tolerated()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Periodic(log_checkpoint.Signing):
    """Periodic work of the server: signed checkpoints, and failure drills."""

    drill_every: Annotated[
        str, Parameter(help="Time between two drills (see `drill`), for the metrics: 1h, 30m.")
    ] = ""

    def drill_every_s(self) -> float:
        """The time between two drills, in seconds; 0 for none. Raises Failure."""
        return options.read_duration("--drill-every", self.drill_every) / 1_000 if self.drill_every else 0


_PERIODIC: Final = Periodic()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Listening:
    """Address, ports, host names and TLS of the server."""

    host: Annotated[
        str,
        Parameter(
            help="Address to listen on; any but the loopback address is open to the network: use --tls."
        ),
    ] = health_endpoint.LOOPBACK
    port: Port = 0
    kube_port: KubePort = 0
    allowed_host: Annotated[
        tuple[str, ...],
        Parameter(
            help="Name or address by which clients reach the server, in addition to localhost; may be repeated.",
            env_var=HOSTS_VARIABLE,
            negative=(),
        ),
    ] = ()
    max_connections: Annotated[
        int,
        Parameter(
            help="Maximum number of connections to one API; further clients get the response 503.",
            validator=validators.Number(gte=1, lte=1_000_000),
        ),
    ] = server.CONNECTIONS_MAX
    tls: Annotated[
        bool,
        Parameter(help="Serve the query API with TLS too; the server creates the certificate.", negative=()),
    ] = False
    tls_certificate: Annotated[
        Path | None, Parameter(help="Use TLS with this certificate (PEM) instead; clients verify its names.")
    ] = None
    tls_key: Annotated[Path | None, Parameter(help="The key of that certificate (PEM).")] = None

    def chosen(self, before: control_plane.Options) -> control_plane.Options:
        """Return a copy of ``before`` with the values of this group; raises Failure if one of them is invalid."""
        for name in self.allowed_host:
            if not incoming_requests.is_host(name):
                raise failures.usage(
                    f"--allowed-host {name!r} is not a host name", "for example: --allowed-host reballast.lan"
                )
        return structs.replace(
            before,
            host=self.host,
            port=self.port,
            kube_port=self.kube_port,
            hosts=self.allowed_host,
            connections_max=self.max_connections,
            tls=self.tls or self.tls_certificate is not None,
            configured_certificates=self._configured_certificates(),
        )

    def _configured_certificates(self) -> certificates.Certificates | None:
        if self.tls_certificate is None and self.tls_key is None:
            return None
        if self.tls_certificate is None or self.tls_key is None:
            raise failures.usage(
                "a certificate needs its key", "give both: --tls-certificate FILE --tls-key FILE"
            )
        with failures.convert(certificates.CertificateError, "use a certificate and its key, both in PEM"):
            return certificates.from_files(self.tls_certificate.absolute(), self.tls_key.absolute())


LISTENING: Final = Listening()

Log = Annotated[
    str | None,
    Parameter(
        help="A log on Kafka, kafka://host:port[,host:port][/prefix], instead of a file in the directory.",
        env_var=LOG_VARIABLE,
    ),
]
Address = Annotated[
    str,
    Parameter(name="--log", help="The log, kafka://host:port[,host:port][/prefix].", env_var=LOG_VARIABLE),
]


def up(
    *,
    data: Data = None,
    listening: Listening = LISTENING,
    members: Members = True,
    log: Log = None,
    tolerated: Tolerated = _TOLERATED,
    periodic: Periodic = _PERIODIC,
    as_json: AsJson = False,
) -> int:
    return serve_with(
        data,
        lambda before: structs.replace(
            listening.chosen(before),
            log=log,
            tolerated=tolerated.seconds(),
            checkpoints=periodic.schedule(before.directory),
            drill_every_s=periodic.drill_every_s(),
        ),
        members=members,
        as_json=as_json,
    )


def api(
    *,
    log: Address,
    data: Data = None,
    listening: Listening = LISTENING,
    members: Annotated[bool, Parameter(help="Run three simulated member clusters here.")] = False,
    tolerated: Tolerated = _TOLERATED,
) -> int:
    token = os.environ.get(server_location.TOKEN_VARIABLE, "")
    return serve_with(
        data,
        lambda options: structs.replace(
            listening.chosen(options),
            log=log,
            works=False,
            token=token,
            tolerated=tolerated.seconds(),
        ),
        members=members,
    )


def worker(
    *,
    log: Address,
    metrics_port: options.MetricsPort = None,
    metrics_host: options.Host = health_endpoint.LOOPBACK,
    signing: log_checkpoint.Signing = log_checkpoint.SIGNING,
) -> int:
    checkpoints = signing.schedule(Path())
    watch = None if metrics_port is None else health_endpoint.Watch(host=metrics_host, port=metrics_port)

    def work() -> None:
        output.print_line("Worker running; Ctrl-C stops it, and other workers take over its shards.")
        _run(control_plane.work(log, watch, checkpoints))

    _guarded(log, work)
    return failures.OK


def projector(*, log: Address, data: Data = None) -> int:
    directory = (data or server_location.default_directory()).absolute()
    output.print_line(f"Updating the views in {directory / store.FILE}; Ctrl-C stops it.")
    _guarded(log, lambda: _run(control_plane.project(log, directory)))
    return failures.OK


def serve_with(
    data: Path | None,
    chosen: Callable[[control_plane.Options], control_plane.Options],
    *,
    members: bool,
    as_json: bool = False,
) -> int:
    """Run a server with the chosen options until it is stopped; ``members`` adds three simulated members."""
    directory = (data or server_location.default_directory()).absolute()
    options = chosen(
        control_plane.Options(
            directory=directory,
            members=defaults.three_members() if members else (),
            # Redirected output may be kept as a log file, so limit the lifetime of the login address in it.
            login_seconds=math.inf if sys.stdout.isatty() else sessions.LOGIN_SECONDS,
            on_ready=lambda endpoint, lost: _announce(endpoint, directory, lost, as_json=as_json),
        )
    )
    if not as_json:
        output.print_line(f"Starting on {directory}; Ctrl-C stops it.")
    if options.log is None:
        _serve_file(options)
    else:
        _guarded(options.log, lambda: _run(control_plane.serve(options)))
    return failures.OK


def _guarded(log: str, work: Callable[[], None]) -> None:
    """Run ``work``, which needs the log on Kafka; convert its errors into Failure."""
    try:
        # LogCorruptedError and LogMixedError are LogErrors too: convert them before the general LogError.
        with (
            failures.convert(AddressError, "for example: --log kafka://localhost:9092"),
            failures.convert(logs.LogError, "check that the brokers are up and that the address is right"),
            failures.convert(logs.LogCorruptedError, next_commands.check_log()),
            failures.convert(logs.LogMixedError, "use another log: --log"),
        ):
            parse(log)
            work()
    except OSError as error:
        if error.errno is None:
            raise
        remedy = "choose another port, or another directory"
        raise failures.Failure(error.strerror or str(error), remedy) from None


def _serve_file(options: control_plane.Options) -> None:
    directory, port = options.directory, options.port
    corrupted = f"{next_commands.check_log()}; then restore the directory"
    try:
        with (
            failures.convert(logs.LogError, "check the directory and the space on its disk", where=directory),
            failures.convert(logs.LogCorruptedError, corrupted, where=directory),
            failures.convert(logs.LogLockedError),
            failures.convert(logs.LogMixedError, "use another directory: --data", where=directory),
        ):
            _run(control_plane.serve(options))
    except OSError as error:
        address = f"port {port} on {options.host}" if error.filename is None else str(error.filename)
        remedy = f"choose another {'--port' if error.filename is None else 'directory: --data'}"
        if error.errno == errno.EADDRNOTAVAIL:
            remedy = "choose a --host that is an address of this machine"
        raise failures.Failure(f"{address}: {error.strerror or error}", remedy) from None


def _announce(endpoint: Endpoint, directory: Path, lost: Sequence[int], *, as_json: bool) -> None:
    """Print that the server is ready. A closed pipe, as in ``reballast up | head -1``, does not stop the server."""
    try:
        if as_json:
            _print_ready_json(endpoint, directory, lost)
        else:
            _print_ready(endpoint, lost)
            if not sys.stdout.isatty():
                minutes = sessions.LOGIN_SECONDS // 60
                output.print_line(f"The address for the browser is valid for {minutes} minutes.")
    except (BrokenPipeError, failures.Failure):
        broken_pipes.discard(sys.stdout)


def _print_ready(endpoint: Endpoint, lost: Sequence[int]) -> None:
    """Print the start-up time and the next commands to try."""
    called, export = command()
    output.print_line(f"Ready after {time.monotonic() - cli.BEGAN_S:.1f} s.")
    output.print_line(f"  in a browser:         {endpoint.login_url}")
    if endpoint.observes:
        first, *others = (
            next_commands.command(words, program=called)
            for words in ("log tail --topic observations", "shadow report", "plan fail CLUSTER")
        )
        output.print_line(f"  in another terminal:  {first}")
        for line in others:
            output.print_line(f"                        {line}")
        return
    output.print_line(f"  in another terminal:  {next_commands.command('get clusters', program=called)}")
    output.print_line(f"  or with kubectl:      export KUBECONFIG={shlex.quote(endpoint.kubeconfig)}")
    if export:
        output.print_line(f"  to type reballast:    {export}")
    for port in lost:
        output.warn(
            f"Port {port} of the last run is used by another program: open pages and kubeconfig contexts "
            "with this port must change to the addresses above."
        )


def _print_ready_json(endpoint: Endpoint, directory: Path, lost: Sequence[int]) -> None:
    output.json(
        {
            "url": endpoint.url,
            "loginUrl": endpoint.login_url,
            "kubeUrl": endpoint.kube_url,
            "kubeconfig": endpoint.kubeconfig,
            "data": str(directory),
            "pid": endpoint.pid,
            "lostPorts": list(lost),
        }
    )


def command() -> tuple[str, str]:
    """The shell command that runs this program, and one that puts the program on the PATH (empty if not needed)."""
    program = Path(sys.argv[0]).absolute()
    if program.name != next_commands.PROGRAM:
        # Started by ``python -m``; the program is next to the interpreter if it is installed.
        program = Path(sys.executable).parent / next_commands.PROGRAM
    if not program.exists():
        return f"{shlex.quote(sys.executable)} -m engine.cli", ""
    on_path = shutil.which(next_commands.PROGRAM)
    if on_path is not None and Path(on_path).absolute() == program:
        return next_commands.PROGRAM, ""
    return shlex.quote(str(program)), f"export PATH={shlex.quote(str(program.parent))}:$PATH"


def _run(serving: Coroutine[object, object, None]) -> None:
    """Run a server. If a task group fails, raise its first LogError; if it has none, its first OSError."""
    try:
        control_plane.run(serving)
    except BaseExceptionGroup as group:
        wrong = group.subgroup(logs.LogError) or group.subgroup(OSError)
        if wrong is None:
            raise
        error: BaseException = wrong
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
