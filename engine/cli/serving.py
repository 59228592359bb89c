"""``up``: the control plane in this process."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import structlog
from cyclopts import Parameter, validators

from engine import cli, runtime
from engine.cli import endpoint, failures, showing
from engine.endpoint import Endpoint
from engine.log import port as logs

_PORT_MAX: Final = 65_535

Data = Annotated[Path | None, Parameter(help="Directory for all data; it is made if it isn't there.")]
Port = Annotated[
    int,
    Parameter(
        help="Port to listen on (loopback only); 0 takes a free one.",
        validator=validators.Number(gte=0, lte=_PORT_MAX),
    ),
]
Members = Annotated[bool, Parameter(help="Run three simulated member clusters.")]


def up(*, data: Data = None, port: Port = 0, members: Members = True) -> int:
    """Run a control plane with simulated member clusters."""
    directory = (data or endpoint.default_directory()).absolute()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    where = "" if data is None else f" --data {data}"
    options = runtime.Options(
        directory=directory,
        port=port,
        members=runtime.default_members() if members else (),
        on_ready=lambda found: _tell_ready(found, where),
    )
    showing.say(f"Starting on {directory}; Ctrl-C stops it.")
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _run(options)
    except logs.LogLockedError as error:
        raise failures.Failure(str(error)) from None
    except logs.LogCorruptedError as error:
        remedy = f"see what is left: reballast log verify{where}; then restore the directory"
        raise failures.Failure(f"{directory}: {error}", remedy) from None
    except logs.LogError as error:
        raise failures.Failure(
            f"{directory}: {error}", "restore the directory, or take another one"
        ) from None
    except OSError as error:
        place = f"port {port} on 127.0.0.1" if error.filename is None else str(error.filename)
        remedy = "choose another --port, or --data"
        raise failures.Failure(f"{place}: {error.strerror or error}", remedy) from None
    return failures.OK


def _tell_ready(found: Endpoint, where: str) -> None:
    """How long it took from the start of the process, and how to go on."""
    showing.say(f"Ready after {time.monotonic() - cli.BEGAN_S:.1f} s.")
    showing.say(f"  in a browser:         {found.login_url}")
    showing.say(f"  in another terminal:  reballast get clusters{where}")


def _run(options: runtime.Options) -> None:
    """Serves; what went wrong with the log is told as that, whichever task met it first."""
    try:
        asyncio.run(runtime.serve(options))
    except BaseExceptionGroup as group:
        wrong = group.subgroup(logs.LogError)
        if wrong is None:
            raise
        error: BaseException = wrong
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
