"""The command line: which commands there are. Each is loaded only when it is called, so that starting is quick.

Exit codes: 0 done, 1 refused or not found, 2 wrong command line, 3 no server answers.
"""

import os
import sys
from typing import Final

from cyclopts import App, CycloptsError

from engine.cli import failures, helps
from events import release


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
)
"""Name, where it is, help, and the group in the list of commands."""


def make_app() -> App:
    """The commands; none of their modules is loaded yet."""
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
    """Runs a command; gives its exit code."""
    try:
        code = make_app()(arguments, exit_on_error=False, print_error=True, result_action="return_value")
    except CycloptsError:
        return failures.USAGE
    except failures.Failure as failure:
        _tell(failure)
        return failure.code
    except BrokenPipeError:
        # Whoever read has enough; the interpreter must not try to write the rest on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.FAILED
    except KeyboardInterrupt:
        return failures.FAILED
    return code if isinstance(code, int) else failures.OK


def main() -> None:
    """The entry point of the command ``reballast``."""
    sys.exit(run(sys.argv[1:]))


def _tell(failure: failures.Failure) -> None:
    from engine.cli import showing  # noqa: PLC0415  # only a failure needs it here

    showing.warn(f"error: {failure.message}")
    if failure.remedy:
        showing.warn(f"  {failure.remedy}")
