"""``log verify``: verify every step, by the server or directly from the log.

A damaged log keeps a server from starting, and a proof should not need the server whose log it proves.
"""

import asyncio
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators

from engine.cli import failures, log_checkpoint, options, output, server_location
from engine.log import port, sqlite_table
from engine.process import log_locations, log_queries, proofs
from engine.proof import checkpoints, verification

_NUMBER: Final = validators.Number(gte=1)
Views = Annotated[bool, Parameter(negative=(), help="Prove the views too: fold the log again and compare.")]
From = Annotated[
    int,
    Parameter(
        name="--from",
        help="Compute only steps from this number of the log on; replay earlier steps.",
        validator=_NUMBER,
    ),
]
To = Annotated[
    int | None,
    Parameter(name="--to", help="Compute only steps up to this number of the log.", validator=_NUMBER),
]
SinceSnapshot = Annotated[
    bool,
    Parameter(negative=(), help="Trust the newest stored snapshot, and compute only the steps after it."),
]


def verify(  # noqa: PLR0913  # the options of a command
    *,
    views: Views = False,
    log: log_checkpoint.LogOption = "",
    first: From = 1,
    last: To = None,
    since_snapshot: SinceSnapshot = False,
    checkpoint: Annotated[
        str, Parameter(help="Signed checkpoints, a file or a kafka:// address, that the log must contain.")
    ] = "",
    public_key: Annotated[
        Path | None, Parameter(help="File with the public key (PEM) that verifies the checkpoints.")
    ] = None,
    processes: options.Processes = None,
    server: options.Server = options.SERVER,
) -> int:
    expected = log_checkpoint.read_checkpoints(checkpoint, public_key) if checkpoint else []
    is_part = since_snapshot or first > 1 or last is not None
    is_direct = bool(log or expected or is_part or processes)
    if is_direct and views:
        raise failures.usage(
            "--views needs the server's directory", "use it without other options than --data"
        )
    if is_direct:
        log_location = log_checkpoint.location_of(log, server)
        scope = verification.Scope(first=first, last=last)
        report = _verified(log_location, scope, expected, since_snapshot=since_snapshot, processes=processes)
    else:
        report = _by_server(server, views=views)
    proved = "this part of the log is" if is_part else "the log is"
    if views and not any(note.kind == "views" for note in report.notes):
        proved = "the log and its views are"
    server.show(report, lambda report: _show(report, expected, proved))
    return failures.FAILED if report.findings else failures.OK


def _show(report: verification.Report, expected: list[checkpoints.Checkpoint], proved: str) -> None:
    findings = report.findings
    output.print_line(f"{report.steps} steps computed again, {report.records} records read")
    for finding in findings:
        output.print_line(output.clean(f"{finding.where}: {finding.kind}: {finding.message}"))
    for difference in report.differences:
        output.print_line(output.clean(f"{difference.where}: other rules: {difference.message}"))
    for note in report.notes:
        output.print_line(output.clean(f"{note.where}: note: {note.message}"))
    if expected and not any(finding.kind == "checkpoint" for finding in findings):
        counted = "1 signed checkpoint" if len(expected) == 1 else f"{len(expected)} signed checkpoints"
        output.print_line(f"the log contains {counted}, the last of {expected[-1].time}")
    output.print_line(_conclusion(report) or f"{proved} verified, no findings")


def _conclusion(report: verification.Report) -> str:
    """Return what is not verified; empty if everything is."""
    if report.findings:
        return f"{len(report.findings)} findings"
    if report.differences:
        return f"no findings, but {len(report.differences)} differences from the rules of other releases"
    if any(note.kind == "unproved" for note in report.notes):
        return "no findings, but not all steps were computed"
    return ""


def _verified(
    location: log_locations.LogLocation,
    scope: verification.Scope,
    expected: list[checkpoints.Checkpoint],
    *,
    since_snapshot: bool,
    processes: int | None,
) -> verification.Report:
    """Verify the log without its server, in ``processes`` processes (by default one per CPU)."""
    remedy = "check the path or address of the log, or restore the log"
    with proof_progress(location, remedy) as show:
        missing: list[verification.Finding] = []
        if expected:
            missing = log_locations.run_on(location, lambda log: checkpoints.differing(log, expected))
        report = proofs.verify(
            location,
            scope,
            since_snapshot=since_snapshot,
            processes=processes or len(os.sched_getaffinity(0)),
            show=show,
        )
    report.findings = missing + report.findings
    return report


@contextmanager
def proof_progress(location: log_locations.LogLocation, remedy: str) -> Generator[proofs.Show]:
    """Yield a function that shows the progress of a proof on a terminal, with its rate, until the block ends.

    Convert errors into Failure; ``remedy`` is for errors of the log.
    """
    began_s = time.monotonic()

    def show(progress: proofs.Progress) -> None:
        rate = progress.records / max(time.monotonic() - began_s, 0.001)
        output.progress(
            f"{progress.records:,} of {progress.until:,} records, {progress.steps:,} steps, {rate:,.0f} records/s"
        )

    with (
        failures.convert(port.LogError, remedy, where=location.path),
        failures.convert(proofs.EmptyScopeError, "choose other numbers: --from, --to"),
        output.clear_progress_after(),
    ):
        yield show


def _by_server(server: options.Server, *, views: bool) -> verification.Report:
    try:
        with server.client() as client:
            return client.verify(verification.Report, views=views)
    except failures.Failure as failure:
        directory = server.data or server_location.default_directory()
        if failure.code != failures.NO_SERVER or not (directory / sqlite_table.FILE).exists():
            raise
    output.warn(f"No server runs on {directory}; reading its files.")
    with (
        failures.convert(port.LogError, "restore the directory", where=directory),
        output.waiting("computing every step again"),
    ):
        return asyncio.run(log_queries.LogInquiry(directory).verify(views=views))
