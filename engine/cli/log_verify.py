"""``log verify``: verify every step, by the server or directly from the files.

A damaged log keeps a server from starting, so verification must work without one.
"""

import asyncio
from typing import Annotated, cast

import msgspec
from cyclopts import Parameter

from engine.cli import failures, options, output, server_location
from engine.log import port, sqlite_table
from engine.process import log_queries
from events.json_values import Json, as_objects

Views = Annotated[bool, Parameter(negative=(), help="Prove the views too: fold the log again and compare.")]


def verify(*, views: Views = False, server: options.Server = options.SERVER) -> int:
    """Prove the log: compute every step again, to the same bytes."""
    report = _report(server, views=views)
    findings, differences = (
        as_objects(report.get("findings")),
        as_objects(report.get("differences")),
    )
    if server.json:
        output.json(report)
    else:
        output.print_line(f"{report.get('steps')} steps computed again, {report.get('records')} records read")
        for finding in findings:
            output.print_line(
                output.clean(f"{finding.get('where')}: {finding.get('kind')}: {finding.get('message')}")
            )
        for difference in differences:
            output.print_line(
                output.clean(f"{difference.get('where')}: other rules: {difference.get('message')}")
            )
        for note in as_objects(report.get("notes")):
            output.print_line(output.clean(f"{note.get('where')}: note: {note.get('message')}"))
        output.print_line("the log is verified, no findings" if not findings else f"{len(findings)} findings")
    return failures.FAILED if findings else failures.OK


def _report(server: options.Server, *, views: bool) -> Json:
    try:
        with server.client() as client:
            return client.verify(views=views)
    except failures.Failure as failure:
        directory = server.data or server_location.default_directory()
        if failure.code != failures.NO_SERVER or not (directory / sqlite_table.FILE).exists():
            raise
    output.warn(f"No server runs on {directory}; reading its files.")
    try:
        return cast(
            "Json", msgspec.to_builtins(asyncio.run(log_queries.LogInquiry(directory).verify(views=views)))
        )
    except port.LogError as error:
        raise failures.Failure(f"{directory}: {error}", "restore the directory") from None
