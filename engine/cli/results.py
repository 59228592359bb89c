"""Output of write results, as kubectl does: one line for each object, or its problems."""

from collections.abc import Sequence
from typing import cast

from engine.cli import failures, output
from events.json_values import Json


def print_results(results: Sequence[Json], *, as_json: bool) -> int:
    """Print all results; return the exit code."""
    if as_json:
        output.json(list(results))
    for result in () if as_json else results:
        for warning in cast("list[str]", result.get("warnings", [])):
            output.warn(f"Warning: {warning}")
        problems = cast("list[Json]", result.get("problems", []))
        if not problems:
            output.print_line(f"{named(result)} {result.get('action')}")
        for problem in problems:
            _print_problem(result, problem)
    return failures.FAILED if any(result.get("problems") for result in results) else failures.OK


def named(result: Json) -> str:
    """``deployment.apps/foo``; clusters have their short kind, as in karmadactl."""
    resource = str(result.get("resource", ""))
    resource = "cluster" if resource == "cluster.cluster.karmada.io" else resource
    return f"{resource}/{result.get('name', '')}"


def _print_problem(result: Json, problem: Json) -> None:
    position = ""
    if problem.get("file"):
        position = f"{problem['file']}:"
        if problem.get("line"):
            position += f"{problem['line']}:"
        if problem.get("document"):
            position += f" document {problem['document']}:"
        position += " "
    # A reason "not found" contains the object's name already.
    is_named = result.get("name") and problem.get("verdict") != "not found"
    named_object = f"{named(result)}: " if is_named else ""
    field = f"{problem['field']}: " if problem.get("field") else ""
    output.warn(f"error: {position}{named_object}{field}{problem.get('reason', '')}")
    if problem.get("remedy"):
        output.warn(f"  {problem['remedy']}")
