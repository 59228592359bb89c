"""Results of writes, printed in kubectl's form: one line for each object, or its problems."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from engine.cli import failures, output

NOT_FOUND = "not found"


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a write was refused: the cause in one word, the field, and the position in a file."""

    verdict: str = ""
    field: str | None = None
    reason: str
    remedy: str | None = None
    file: str | None = None
    document: int | None = None
    line: int | None = None


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The result of a write: the ``action`` on the object, or the problems.

    ``kept_scheduler`` is the scheduler that an existing policy keeps, although the imported policy names another.
    """

    action: str = ""
    resource: str | None = None
    name: str | None = None
    namespace: str = ""
    problems: Sequence[Problem] = ()
    warnings: Sequence[str] = ()
    resource_version: str = ""
    kept_scheduler: str = ""

    @property
    def label(self) -> str:
        """Kind and name, such as ``deployment.apps/foo``; for a cluster ``cluster/foo``, as karmadactl prints it."""
        resource = "cluster" if self.resource == "cluster.cluster.karmada.io" else self.resource
        return f"{resource or ''}/{self.name or ''}"


def carry_out(outcomes: Iterable[Result], *, as_json: bool) -> list[Result]:
    """Make the writes and return their results. If a write fails or is interrupted, print the results before it."""
    made: list[Result] = []
    try:
        made.extend(outcomes)
    except BaseException:
        if made:
            print_results(made, as_json=as_json)
        raise
    return made


def print_results(results: Sequence[Result], *, as_json: bool) -> int:
    """Print all results, and their problems to standard error; return the exit code."""
    if as_json:
        output.json(list(results))
    for result in results:
        if not as_json:
            for warning in result.warnings:
                output.warn(f"Warning: {warning}")
            if not result.problems:
                output.print_line(f"{result.label} {result.action}")
        for problem in result.problems:
            output.print_failure(_failure(result, problem), as_json=as_json)
    return failures.FAILED if any(result.problems for result in results) else failures.OK


def _failure(result: Result, problem: Problem) -> failures.Failure:
    position = ""
    if problem.file:
        position = f"{problem.file}:"
        if problem.line:
            position += f"{problem.line}:"
        if problem.document:
            position += f" document {problem.document}:"
        position += " "
    # A reason "not found" contains the object's name already.
    is_named = result.name and problem.verdict != NOT_FOUND
    named_object = f"{result.label}: " if is_named else ""
    field = f"{problem.field}: " if problem.field else ""
    return failures.Failure(f"{position}{named_object}{field}{problem.reason}", problem.remedy or "")
