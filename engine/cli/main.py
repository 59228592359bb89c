"""The table of commands; each command's module is loaded only when it is called, for a quick start.

Exit codes: 0 done, 1 refused or not found, 2 invalid command line, 3 no server answers. Commands that exit with 2
if something changes or differs exit with 1 for an invalid command line. With ``--json`` an error is a JSON object on
standard error: ``{"error": {"message", "remedy", "exitCode"}}``.
"""

import os
import re
import sys
from typing import TYPE_CHECKING, Final

from engine import broken_pipes
from engine.cli import failures, next_commands
from engine.cli.help_texts import clusters, objects, questions, servers
from engine.process import interpreter_settings
from events import release

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

_OPTIONS: Final = {"help": "--help", "version": "--version"}
"""Options that may be written as commands."""

_COUNTERPARTS: Final = {
    "annotate": "edit the object: reballast edit KIND NAME",
    "create": "apply a file: reballast apply -f FILE",
    "init": "start a control plane: reballast up",
    "rebalance": "apply a WorkloadRebalancer; predict its effect with: reballast plan rebalance",
}
"""The remedy for commands of kubectl and karmadactl that have another form here."""

_COMPARING: Final = frozenset({"audit", "drill", "import", "plan", "shadow"})
"""Commands that exit with ``failures.DIFFERENT`` if something changes or differs."""

_FILES: Final = (".yaml", ".yml", ".json")
_UNDECODED: Final = re.compile(r"[\udc80-\udcff]")


def _version() -> str:
    return f"reballast {release.RELEASE}"


COMMANDS: Final = (
    ("up", "serve:up", servers.UP, "Server"),
    ("worker", "serve:worker", servers.WORKER, "Server"),
    ("api", "serve:api", servers.API, "Server"),
    ("projector", "serve:projector", servers.PROJECTOR, "Server"),
    ("observe", "karmada.observer_commands:observe", servers.OBSERVE, "Server"),
    ("scheduler", "karmada.observer_commands:scheduler", servers.SCHEDULER, "Server"),
    ("import", "karmada.importing:import_karmada", objects.IMPORT, "Objects"),
    ("tour", "tour:tour", servers.TOUR, "Server"),
    ("apply", "apply:apply", objects.APPLY, "Objects"),
    ("delete", "apply:delete", objects.DELETE, "Objects"),
    ("get", "get:get", objects.GET, "Objects"),
    ("describe", "describe:describe", objects.DESCRIBE, "Objects"),
    ("edit", "edit:edit", objects.EDIT, "Objects"),
    ("scale", "set_properties:scale", objects.SCALE, "Objects"),
    ("label", "set_properties:label", objects.LABEL, "Objects"),
    ("taint", "set_properties:taint", clusters.TAINT, "Clusters"),
    ("untaint", "set_properties:untaint", clusters.UNTAINT, "Clusters"),
    ("cordon", "set_properties:cordon", clusters.CORDON, "Clusters"),
    ("uncordon", "set_properties:uncordon", clusters.UNCORDON, "Clusters"),
    ("join", "agents:join", clusters.JOIN, "Clusters"),
    ("unjoin", "unjoin:unjoin", clusters.UNJOIN, "Clusters"),
    ("agent", "agents:agent", servers.AGENT, "Server"),
    ("members", "member_faults:members", clusters.MEMBERS, "Simulation"),
    ("fault", "member_faults:fault", clusters.FAULT, "Simulation"),
    ("heal", "member_faults:heal", clusters.HEAL, "Simulation"),
    ("plan", "plan.commands:app", questions.PLAN, "Questions"),
    ("drill", "plan.drill:drill", questions.DRILL, "Questions"),
    ("audit", "audit:audit", questions.AUDIT, "Questions"),
    ("shadow", "karmada.shadow:app", questions.SHADOW, "Questions"),
    ("explain", "explain:explain", questions.EXPLAIN, "Questions"),
    ("timeline", "explain:timeline", questions.TIMELINE, "Questions"),
    ("log", "logs:app", questions.LOG, "Questions"),
    ("replay", "logs:replay", questions.REPLAY, "Questions"),
    ("schedule", "schedule:schedule", questions.SCHEDULE, "Tools"),
    ("schema", "schema:schema", questions.SCHEMA, "Tools"),
    ("bench", "bench:app", questions.BENCH, "Tools"),
    ("completion", "completion:completion", questions.COMPLETION, "Tools"),
)
"""Name, module and function, help text, and group in the list of commands."""


def make_app() -> "App":
    """The application with all commands; their modules are not loaded yet."""
    from cyclopts import App  # noqa: PLC0415  # not needed to report an unknown command

    app = App(
        name=next_commands.PROGRAM,
        help=servers.HEAD,
        help_format="plaintext",
        version=_version,
        version_flags=["--version"],
    )
    for name, target, text, group in COMMANDS:
        app.command(f"engine.cli.{target}", name=name, help=text, group=group)
    return app


def run(arguments: list[str]) -> int:
    """Run a command; return its exit code."""
    as_json = "--json" in arguments
    try:
        if arguments and arguments[0] in _OPTIONS:
            arguments = [*arguments[1:], _OPTIONS[arguments[0]]]
        _check_command(arguments)
        next_commands.store_arguments(arguments)
        code = _run_command(arguments)
    except failures.Failure as failure:
        if failure.code == failures.USAGE and arguments[0] in _COMPARING:
            failure.code = failures.FAILED
        _print_failure(failure, as_json=as_json)
        return failure.code
    except BrokenPipeError:
        broken_pipes.discard(sys.stdout)
        return failures.FAILED
    except UnicodeEncodeError:
        # Python decodes an argument that is not UTF-8 to surrogates, which cannot be encoded in a request or printed.
        odd = [word for word in arguments if _UNDECODED.search(word)]
        if not odd:
            raise
        _print_failure(failures.usage(f"{odd[0]!r} is not UTF-8"), as_json=as_json)
        return failures.USAGE
    except KeyboardInterrupt:
        return failures.FAILED
    return code if isinstance(code, int) else failures.OK


def main() -> None:
    """Entry point of the command ``reballast``."""
    interpreter_settings.collect_rarely()
    _prepare_output()
    code = run(sys.argv[1:])
    interpreter_settings.skip_last_collection()
    sys.exit(code)


def _prepare_output() -> None:
    """Escape characters that standard output cannot encode, and discard output if standard output is closed."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    elif reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")


def _run_command(arguments: list[str]) -> object:
    """Run the command; raises Failure for a wrong command line."""
    from cyclopts import CycloptsError  # noqa: PLC0415  # not needed to report an unknown command

    try:
        return make_app()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise _usage_failure(error) from None


def _usage_failure(error: "CycloptsError") -> failures.Failure:
    """The failure for arguments that a command does not accept."""
    from cyclopts import MissingArgumentError  # noqa: PLC0415  # not needed to report an unknown command

    message = str(error).rstrip(".")
    remedy = f"see: {' '.join((next_commands.PROGRAM, *(error.command_chain or ())))} --help"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        message = f"{error.keyword} has no value" if error.keyword else f"missing {error.argument.name}"
    if type(error).__name__ == "UnusedCliTokensError" and error.unused_tokens:
        message = f"unexpected argument: {error.unused_tokens[0]}"
        if error.unused_tokens[0].endswith(_FILES):
            remedy = "name files with -f"
    return failures.usage(f"{message[:1].lower()}{message[1:]}", remedy)


def _check_command(arguments: list[str]) -> None:
    """Raise Failure for an unknown command, before loading anything."""
    first = arguments[0] if arguments else "--help"
    names = [name for name, *_rest in COMMANDS]
    if first.startswith("-") or first in names:
        return
    remedy = failures.suggestion(first.lower(), names, "see all commands: reballast --help")
    raise failures.usage(f'unknown command "{first}"', _COUNTERPARTS.get(first, remedy))


def _print_failure(failure: failures.Failure, *, as_json: bool) -> None:
    from engine.cli import output  # noqa: PLC0415  # only a failure needs it

    output.print_failure(failure, as_json=as_json)
