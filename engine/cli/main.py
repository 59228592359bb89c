"""The table of commands; each command's module is loaded only when it is called, for a quick start.

Exit codes: 0 done, 1 refused or not found, 2 wrong command line, 3 no server answers. With ``--json`` an
error is a JSON object on standard error: ``{"error": {"message", "remedy", "exitCode"}}``.
"""

import difflib
import os
import sys
from typing import TYPE_CHECKING, Final

from engine.cli import failures, helps
from events import release

if TYPE_CHECKING:
    from cyclopts import App

_CLOSE: Final = 0.5


def _version() -> str:
    return f"reballast {release.RELEASE}"


_COMMANDS: Final = (
    ("up", "serving:up", helps.UP, "Server"),
    ("worker", "serving:worker", helps.WORKER, "Server"),
    ("api", "serving:api", helps.API, "Server"),
    ("projector", "serving:projector", helps.PROJECTOR, "Server"),
    ("tour", "tour:tour", helps.TOUR, "Server"),
    ("apply", "applying:apply", helps.APPLY, "Objects"),
    ("delete", "applying:delete", helps.DELETE, "Objects"),
    ("get", "getting:get", helps.GET, "Objects"),
    ("describe", "describing:describe", helps.DESCRIBE, "Objects"),
    ("edit", "editing:edit", helps.EDIT, "Objects"),
    ("scale", "changing:scale", helps.SCALE, "Objects"),
    ("label", "changing:label", helps.LABEL, "Objects"),
    ("taint", "changing:taint", helps.TAINT, "Clusters"),
    ("untaint", "changing:untaint", helps.UNTAINT, "Clusters"),
    ("cordon", "changing:cordon", helps.CORDON, "Clusters"),
    ("uncordon", "changing:uncordon", helps.UNCORDON, "Clusters"),
    ("join", "agents:join", helps.JOIN, "Clusters"),
    ("unjoin", "unjoining:unjoin", helps.UNJOIN, "Clusters"),
    ("agent", "agents:agent", helps.AGENT, "Server"),
    ("members", "faulting:members", helps.MEMBERS, "Simulation"),
    ("fault", "faulting:fault", helps.FAULT, "Simulation"),
    ("heal", "faulting:heal", helps.HEAL, "Simulation"),
    ("explain", "asking:explain", helps.EXPLAIN, "Questions"),
    ("timeline", "asking:timeline", helps.TIMELINE, "Questions"),
    ("log", "logs:app", helps.LOG, "Questions"),
    ("replay", "logs:replay", helps.REPLAY, "Questions"),
    ("schedule", "schedule:schedule", helps.SCHEDULE, "Tools"),
    ("schema", "schemas:schema", helps.SCHEMA, "Tools"),
    ("bench", "benching:app", helps.BENCH, "Tools"),
    ("completion", "completing:completion", helps.COMPLETION, "Tools"),
)
"""Name, module and function, help text, and group in the list of commands."""


def make_app() -> "App":
    """The application with all commands; their modules are not loaded yet."""
    from cyclopts import App  # noqa: PLC0415  # not needed to report an unknown command

    app = App(
        name="reballast",
        help=helps.HEAD,
        help_format="plaintext",
        version=_version,
        version_flags=["--version"],
    )
    for name, target, text, group in _COMMANDS:
        app.command(f"engine.cli.{target}", name=name, help=text, group=group)
    return app


def run(arguments: list[str]) -> int:
    """Run a command; return its exit code."""
    as_json = "--json" in arguments
    try:
        _check_command(arguments)
        code = _called(arguments, as_json=as_json)
    except failures.Failure as failure:
        _tell(failure, as_json=as_json)
        return failure.code
    except BrokenPipeError:
        # The reader closed the pipe. Replace stdout, so that the interpreter's final flush does not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.FAILED
    except KeyboardInterrupt:
        return failures.FAILED
    return code if isinstance(code, int) else failures.OK


def main() -> None:
    """Entry point of the command ``reballast``."""
    sys.exit(run(sys.argv[1:]))


def _called(arguments: list[str], *, as_json: bool) -> object:
    """Run the command; with ``as_json``, raises Failure for a wrong command line."""
    from cyclopts import CycloptsError  # noqa: PLC0415  # not needed to report an unknown command

    try:
        return make_app()(
            arguments, exit_on_error=False, print_error=not as_json, result_action="return_value"
        )
    except CycloptsError as error:
        if as_json:
            raise failures.usage(str(error)) from None
        return failures.USAGE


def _check_command(arguments: list[str]) -> None:
    """Raise Failure for an unknown command, before loading anything."""
    first = arguments[0] if arguments else "--help"
    names = [name for name, *_rest in _COMMANDS]
    if first.startswith("-") or first in names:
        return
    close = difflib.get_close_matches(first.lower(), names, 1, _CLOSE)
    remedy = f"did you mean {close[0]}?" if close else "see all commands: reballast --help"
    raise failures.usage(f'unknown command "{first}"', remedy)


def _tell(failure: failures.Failure, *, as_json: bool) -> None:
    from engine.cli import showing  # noqa: PLC0415  # only a failure needs it

    if as_json:
        showing.warn_json(
            {"error": {"message": failure.message, "remedy": failure.remedy, "exitCode": failure.code}}
        )
        return
    showing.warn(f"error: {failure.message}")
    if failure.remedy:
        showing.warn(f"  {failure.remedy}")
