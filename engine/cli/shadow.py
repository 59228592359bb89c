"""``shadow report``: the decisions of an observed control plane beside ours."""

import asyncio
from typing import Final

from cyclopts import App
from msgspec import Struct

from engine.cli import failures, help_texts, log_checkpoint, options, output
from engine.log import port
from engine.observer import shadow
from engine.process import log_places
from events import codec, keys, observations, topics

app = App(name="shadow", help=help_texts.SHADOW, help_format="plaintext")

_EXPLAINED: Final = 0
_UNEXPLAINED: Final = 2
_READ: Final = 1_000
_EXAMPLES_MAX: Final = 5


class Report(Struct, rename="camel"):
    """The compared decisions: their number by verdict, and the newest that are not the same."""

    decisions: int
    verdicts: dict[str, int]
    examples: dict[str, list[observations.DecisionCompared]]


@app.command(help="Count the decisions by verdict, and show the newest that differ.")
def report(*, log: log_checkpoint.Place = "", server: options.Server = options.SERVER) -> int:
    """Read the comparisons from the log, also beside a running observer."""
    try:
        found = asyncio.run(_read(log_checkpoint.place_of(log, server)))
    except port.LogError as error:
        raise failures.Failure(str(error), "check the log: reballast log verify") from None
    if server.json:
        output.json(found)
    else:
        _show(found)
    return _UNEXPLAINED if found.verdicts[shadow.UNEXPLAINED] else _EXPLAINED


async def _read(place: log_places.LogPlace) -> Report:
    verdicts: dict[str, int] = dict.fromkeys((shadow.SAME, shadow.RACE, shadow.KNOWN, shadow.UNEXPLAINED), 0)
    found = Report(0, verdicts, {})
    async with log_places.opened(place) as log:
        start = 0
        while batch := await log.read(topics.OBSERVATIONS, 0, start, _READ):
            start = batch[-1].offset + 1
            for record in batch:
                decoded = codec.decode(record)
                if isinstance(decoded, codec.Decoded) and isinstance(
                    decoded.data, observations.DecisionCompared
                ):
                    _count(found, decoded.data)
    return found


def _count(found: Report, compared: observations.DecisionCompared) -> None:
    found.decisions += 1
    found.verdicts[compared.verdict] = found.verdicts.get(compared.verdict, 0) + 1
    if compared.verdict != shadow.SAME:
        examples = found.examples.setdefault(compared.verdict, [])
        examples.append(compared)
        del examples[:-_EXAMPLES_MAX]


def _show(found: Report) -> None:
    if not found.decisions:
        output.print_line("no decisions compared yet; the observer compares those made while it runs")
        return
    output.table(
        ("VERDICT", "DECISIONS", "SHARE"),
        [
            (verdict, f"{count:,}", f"{count / found.decisions:.2%}")
            for verdict, count in found.verdicts.items()
        ],
    )
    for verdict, examples in found.examples.items():
        output.print_line("")
        output.print_line(f"{verdict}, newest:")
        for compared in examples:
            name = keys.split(f"{compared.namespace}/{compared.name}")
            output.print_line(
                output.clean(f"  {'/'.join(filter(None, name))} at {compared.version}: {compared.why}")
            )
            output.print_line(output.clean(f"    Karmada:   {_result(compared.observed)}"))
            output.print_line(output.clean(f"    Reballast: {_result(compared.computed)}"))


def _result(result: observations.ShadowCondition) -> str:
    placed = ", ".join(f"{name}: {count}" for name, count in sorted(result.clusters.items())) or "nowhere"
    return f"{placed} ({result.reason}: {result.message})"
