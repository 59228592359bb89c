"""``reballast drill``: predict the failure of each cluster, zone, region and provider on a separate fork of the log."""

import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final

from cyclopts import Parameter

from engine.cli import failures, next_commands, options, output, server_reads
from engine.cli.client import Client
from engine.cli.plan import planning_client
from engine.cli.plan.subjects import SUBJECT, Subject
from engine.plans import drills, questions, summaries

_BUSY_PAUSE_S: Final = 0.2

By = Annotated[
    list[drills.Domain], Parameter(negative=(), help="Kinds of failures to predict; by default all of them.")
]


def drill(
    *,
    by: By = list(drills.ALL),  # noqa: B006  # cyclopts makes a new list for each call
    horizon: options.Horizon = "30m",
    as_of: options.AsOf = "",
    subject: Subject = SUBJECT,
) -> int:
    horizon_ms = planning_client.read_horizon(horizon)
    with (
        subject.opened(as_of) as opened,
        Client(opened.directory) as client,
    ):
        outages = drills.outages(server_reads.objects(client, "clusters", asOf=opened.as_of), by)
        if not outages:
            raise failures.Failure(
                "the control plane has no clusters", next_commands.hint("join one", "join NAME")
            )
        results = _results(client, outages, horizon_ms, opened.as_of)
    subject.show(results, lambda results: _show(results, opened.notes))
    return failures.DIFFERENT if any(result.missing for result in results) else failures.OK


def _results(
    client: Client, outages: Sequence[drills.Outage], horizon_ms: int, as_of: str
) -> list[drills.Result]:
    """Return the result of each outage, in order; shows the progress on a terminal.

    All predictions start from the same sequence number, so that the server rebuilds the engine only once. If the
    server is busy with other plans, the request is repeated after a pause.
    """
    done = 0

    def predict(outage: drills.Outage, start: str) -> tuple[drills.Result, int]:
        nonlocal done
        while True:
            try:
                _, prediction = planning_client.predict(
                    client, [], [], horizon_ms, lambda _: None, start, outage=outage
                )
                break
            except failures.ServerBusy:
                time.sleep(_BUSY_PAUSE_S)
        done += 1
        output.progress(f"drill: {done} of {len(outages)} failures")
        return drills.result(outage, prediction), prediction.number

    first, number = predict(outages[0], as_of)
    start = as_of or str(number)
    with ThreadPoolExecutor(questions.AT_ONCE_MAX) as pool:
        others = pool.map(predict, outages[1:], itertools.repeat(start))
        results = [first, *(result for result, _ in others)]
    output.progress("")
    return results


def _show(results: Sequence[drills.Result], notes: Sequence[str]) -> None:
    output.table(
        ("FAILURE", "DOWN", "MOVED", "DISTURBED", "UNPLACED", "RECOVERED", "NEEDS"),
        [
            (
                f"{result.outage.domain} {result.outage.name}",
                len(result.outage.clusters),
                result.moved,
                len(result.suffering),
                result.missing,
                "never" if result.recovered_ms is None else summaries.duration(result.recovered_ms),
                " ".join(f"{name} {text}" for name, text in result.needed.items()) or "-",
            )
            for result in results
        ],
        wraps=True,
    )
    for result in results:
        lost = [workload for workload in result.suffering if workload.missing]
        missing = [
            f"{workload.key} is missing {summaries.count(workload.missing, 'replica')}" for workload in lost
        ]
        for line in (*(remedy.text for remedy in result.remedies), *output.shortened(missing)):
            output.print_text(f"{result.outage.domain} {result.outage.name}: {line}")
    for note in (*dict.fromkeys(note for result in results for note in result.assumptions), *notes):
        output.warn(f"note: {note}")
