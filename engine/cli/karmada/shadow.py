"""``shadow report`` and ``shadow explain``: compare the decisions of an observed control plane with Reballast's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec
from cyclopts import App

from engine.cli import (
    explanation_texts,
    failures,
    log_checkpoint,
    next_commands,
    options,
    output,
    server_reads,
    set_properties,
)
from engine.cli.help_texts import questions
from engine.log import port, reading
from engine.observer import report as reports
from engine.observer import shadow
from engine.placement.parsing import UnreadableError
from engine.process import log_locations
from events import codec, keys, observations, shapes, topics

app = App(name="shadow", help=questions.SHADOW, help_format="plaintext")

_EXAMPLES_SHOWN: Final = 5


@app.command
def report(*, log: log_checkpoint.LogOption = "", server: options.Server = options.SERVER) -> int:
    """Count the decisions by verdict, and show the newest that differ."""
    with failures.convert(port.LogError, next_commands.check_log()):
        compared = asyncio.run(_read(log_checkpoint.location_of(log, server)))
    server.show(compared, _show)
    return failures.DIFFERENT if compared.verdicts[shadow.UNEXPLAINED] else failures.OK


@app.command
def explain(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    scope: options.NamespaceOption = options.NAMESPACE,
    log: log_checkpoint.LogOption = "",
    server: options.Server = options.SERVER,
) -> None:
    """Explain the newest decision of Karmada's scheduler on a workload."""
    kind, name = set_properties.split(kind, name)
    namespace, bound = keys.split(server_reads.key_of(server_reads.kind_of(kind), scope.namespace, name))
    with failures.convert(port.LogError, next_commands.check_log()):
        explained, is_ours = asyncio.run(
            _explained(log_checkpoint.location_of(log, server), namespace, bound)
        )
    if explained is None:
        where = f" in {namespace}" if namespace else ""
        words = f"timeline {kind} {name}{next_commands.namespace(namespace)}"
        raise failures.Failure(
            f"no decision of Karmada's scheduler on {kind} {name}{where} was observed together with its inputs",
            next_commands.hint("see the newest compared decisions", "shadow report", next_commands.LOG)
            if log
            else next_commands.hint("see what was observed", words),
        )
    if server.json:
        output.json(explained)
        return
    for heading, line in _head(explained, is_ours=is_ours):
        output.print_wrapped(f"{heading}:", line, 11)
    is_race = explained.compared.verdict == shadow.RACE
    if is_race:
        output.print_line("")
        output.print_line(
            f"With the clusters at resourceVersion {explained.clusters}, from which Karmada decided:"
        )
    for group in explained.explanation.groups if explained.explanation else ():
        explanation_texts.show_group(group)
    if is_race:
        output.print_line("")
        output.print_line(
            f"With the clusters at resourceVersion {explained.latest}, the newest before the decision:"
        )
        for reason in reports.differing(explained.compared):
            output.print_wrapped(f"  {reason.cluster}:", reports.reason(reason), 11)


def _head(explained: shadow.Explained, *, is_ours: bool) -> Iterator[tuple[str, str]]:
    """Yield (heading, text) pairs that describe a decision. With ``is_ours``, `reballast scheduler` made it."""
    compared, scheduler = explained.compared, "reballast scheduler" if is_ours else "Karmada"
    yield "Binding", keys.full_name(compared.namespace, compared.name)
    yield (
        "Decided",
        f"by {scheduler}, written at resourceVersion {compared.version}, read at {compared.basis}",
    )
    yield "Trigger", explained.trigger or "none"
    yield "Replicas", str(explained.replicas)
    yield "Before", explanation_texts.counts(explained.previous)
    if is_ours:
        yield "Placed", reports.placed(compared.observed)
        return
    yield "Karmada", reports.placed(compared.observed)
    yield "Reballast", reports.placed(compared.computed)
    yield "Verdict", compared.verdict + (f" ({compared.why})" if compared.why else "")


async def _explained(
    location: log_locations.LogLocation, namespace: str, name: str
) -> tuple[shadow.Explained | None, bool]:
    """Return the newest decision on a binding, and whether `reballast scheduler` made it."""
    made: set[int] = set()
    kind = "ResourceBinding" if namespace else "ClusterResourceBinding"
    folded = shadow.Shadow((kind, namespace, name))
    async for data in _observations(location):
        match data:
            case observations.ObjectChange(group=group) if group:
                pass
            case observations.ObjectObserved():
                with contextlib.suppress(msgspec.MsgspecError, UnreadableError):
                    folded.take(data.kind, data.manifest, skipping=data.skipping)
            case observations.DecisionMade() if (data.kind, data.namespace, data.name) == (
                kind,
                namespace,
                name,
            ):
                made.add(data.version)
            case observations.ControlPlaneRestored():
                folded.restored()
            case observations.ObjectVanished():
                folded.take_deletion(data.kind, data.namespace, data.name, data.version)
            case _:
                pass
    if folded.explanation is None:
        return None, False
    folded.compare_again(shadow.decision_key(folded.explanation.compared))
    return folded.explanation, folded.explanation.compared.basis in made


async def _read(location: log_locations.LogLocation) -> reports.Report:
    result = reports.Report()
    async for data in _observations(location):
        if isinstance(data, observations.DecisionCompared):
            result.take(data)
    return result


async def _observations(location: log_locations.LogLocation) -> AsyncIterator[shapes.Event]:
    async with log_locations.opened(location) as log:
        async for record in reading.of_partition(log, topics.OBSERVATIONS, 0):
            if (data := codec.event_of(record)) is not None:
                yield data


def _show(report: reports.Report) -> None:
    if not report.decisions:
        output.print_line("The log contains no compared decisions.")
        output.print_text(
            "  `reballast observe` compares the decisions that Karmada's scheduler makes while it runs."
        )
        return
    output.table(
        ("VERDICT", "DECISIONS", "SHARE"),
        [
            (verdict, f"{count:,}", f"{count / report.decisions:.2%}")
            for verdict, count in report.verdicts.items()
        ],
    )
    for verdict, examples in report.examples.items():
        output.print_line("")
        output.print_line(f"{verdict}, newest:")
        for compared in examples[-_EXAMPLES_SHOWN:]:
            head = f"{keys.full_name(compared.namespace, compared.name)} at {compared.version}"
            output.print_wrapped("", f"{head}: {compared.why}" if compared.why else head, 2)
            output.print_wrapped("    Karmada:", reports.placed(compared.observed), 15)
            output.print_wrapped("    Reballast:", reports.placed(compared.computed), 15)
            for reason in reports.differing(compared):
                output.print_wrapped(f"      {reason.cluster}:", reports.reason(reason), 15)
