"""A temporary copy of an existing Karmada in a separate server, to plan changes on; Karmada itself is only read."""

import asyncio
import contextlib
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from engine.agent import messages
from engine.cli import failures, log_checkpoint, next_commands, options, output, private_server
from engine.cli.client import Client
from engine.cli.karmada import importing, observer_commands, states
from engine.cli.kube_objects import KubeObjects
from engine.http.errors import RefusalError
from engine.http.query import view_reads
from engine.log import port
from engine.process import log_locations
from events import keys

_REPORT_ID: Final = "observed"


class Copy(Struct, frozen=True):
    """The data directory of a copy's server, and notes on the parts of the original that are not copied."""

    directory: Path
    notes: list[str]


def live_state(kubeconfig: Path, context: str, as_of: str) -> states.State:
    """Read a control plane through its API; raises Failure."""
    if as_of:
        raise failures.usage(
            "--as-of: an API has only its present state", "plan on the log of `reballast observe`: --log"
        )
    return states.of_api(observer_commands.Source(kubeconfig=kubeconfig, context=context).access())


def recorded_state(log: str, server: options.Server, as_of: str) -> states.State:
    """Read an observed control plane from ``log``, or from the log in the server's data directory; raises Failure."""
    log_location = log_checkpoint.location_of(log, server)
    with failures.convert(port.LogError, next_commands.check_log()):
        state = asyncio.run(_of_log(log_location, as_of))
    if state is None:
        raise failures.Failure(
            "no observations up to that time",
            next_commands.hint("observe a control plane", "observe --kubeconfig FILE"),
        )
    return state


async def _of_log(location: log_locations.LogLocation, as_of: str) -> states.State | None:
    async with log_locations.opened(location) as log:
        try:
            number = await view_reads.resolve(log, as_of)
        except RefusalError as refusal:
            problem = refusal.problem
            raise failures.Failure(f"--as-of: {problem.reason}", problem.remedy) from None
        return await states.of_log(log, number)


@contextlib.contextmanager
def running(state: states.State) -> Generator[Copy]:
    """Copy a control plane, and run the copy until the block ends; raises Failure if its server fails."""
    with tempfile.TemporaryDirectory(prefix="reballast-copy-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary) / "data"
        with (
            private_server.running(directory, "--no-members"),
            Client(directory) as client,
        ):
            report = importing.copied(KubeObjects(client), state, dry_run=False)
            report.moved = importing.moved(client, state)
            for cluster, running_there in sorted(state.running.items()):
                output.progress(f"copying: workloads in {cluster}")
                _report(client, cluster, running_there)
            output.progress("")
            yield Copy(directory, _notes(report))


def _report(
    client: Client, cluster: str, running_there: Mapping[states.NamespacedName, states.Running]
) -> None:
    """Report what the original cluster runs to the copied control plane, as the cluster's agent would."""
    path = f"agents/{quote(cluster, safe='')}"
    if client.find(path, messages.Cluster) is None:
        return
    by_key = {keys.full_name(*binding): result for binding, result in running_there.items()}
    reports = [
        _reported(work, by_key[work.key])
        for work in _works(client, path)
        if work.state == messages.APPLIED and work.key in by_key
    ]
    for number in range(0, len(reports), messages.REPORTS_MAX):
        batch = messages.Reports(
            id=f"{_REPORT_ID}-{number}", reports=tuple(reports[number : number + messages.REPORTS_MAX])
        )
        client.post(f"{path}/reports", batch, object)


def _works(client: Client, path: str) -> Iterator[messages.Work]:
    with client.stream(f"{path}/works") as lines:
        for text in lines:
            line = msgspec.json.decode(text, type=messages.Line)
            if line.work is not None:
                yield line.work
            if line.is_listed:
                return


def _reported(work: messages.Work, running: states.Running) -> messages.WorkloadReport:
    return messages.WorkloadReport(
        key=work.key,
        term=work.term,
        step=work.step,
        replicas=running.replicas,
        updated=running.replicas,
        ready=running.ready,
        available=running.ready,
        healthy=running.healthy,
    )


def _notes(report: importing.Report) -> list[str]:
    notes = [f"not copied: {importing.refusal(result)}" for result in report.refused]
    if report.moved:
        notes.append(f"placed differently than observed: {', '.join(move.binding for move in report.moved)}")
    notes += report.notes
    return output.shortened(notes, "{} more notes")
