"""Print a prediction: a summary, each workload with bars, the clusters, and the warnings."""

from collections.abc import Sequence
from typing import Final

from engine.cli import output
from engine.plans import summaries
from engine.plans.predictions import Prediction, WorkloadChange

_BAR: Final = 20
_KEPT, _LEAVING, _COMING = "█", "░", "▓"
_RED, _GREEN, _END = "\x1b[31m", "\x1b[32m", "\x1b[0m"


def show(prediction: Prediction, warnings: Sequence[str], limit: int) -> None:
    """Print a prediction, with at most ``limit`` workloads."""
    output.print_line(summaries.summary(prediction))
    shown = summaries.most_disturbed(prediction)
    for change in shown[:limit]:
        output.print_line("")
        for line in _workload(change):
            output.print_line(line)
    if len(shown) > limit:
        output.print_line(f"\n… and {len(shown) - limit} more workloads; --limit shows them, --json has all.")
    if prediction.clusters:
        output.print_line("")
        output.table(
            ("CLUSTER", "RESOURCE", "BEFORE", "AFTER", "PEAK", "OF"), summaries.loads(prediction.clusters)
        )
    for note in summaries.notes(prediction, warnings):
        output.warn(f"note: {note}")


def _workload(change: WorkloadChange) -> list[str]:
    template = change.template
    where = f" in {template.namespace}" if template.namespace else ""
    lines = [f"{template.kind.lower()}/{template.name}{where}: {summaries.ready(change)}"]
    names = sorted(change.before.keys() | change.after.keys())
    most = max([*change.before.values(), *change.after.values(), 1])
    width = max(map(len, names), default=0)
    for name in names:
        before, after = change.before.get(name, 0), change.after.get(name, 0)
        if before == after == 0:
            sign = (
                ""
                if name in change.before and name in change.after
                else "gone"
                if name in change.before
                else "new"
            )
            lines.append(f"  {name.ljust(width)}  {sign}".rstrip())
            continue
        numbers = f"{before} → {after}" if before != after else str(after)
        lines.append(f"  {name.ljust(width)}  {_bar(before, after, most)}  {numbers}")
    if change.message:
        lines.append(f"  {output.clean(change.message)}")
    return lines


def _bar(before: int, after: int, most: int) -> str:
    """Return replicas as a bar: those that stay, then those that are removed or added."""
    scale = max(most / _BAR, 1)
    kept, gone, new = (
        round(count / scale) for count in (min(before, after), max(before - after, 0), max(after - before, 0))
    )
    pad = " " * (min(_BAR, most) - kept - gone - new)
    if output.has_colours():
        return f"{_KEPT * kept}{_RED}{_LEAVING * gone}{_END}{_GREEN}{_COMING * new}{_END}{pad}"
    return f"{_KEPT * kept}{_LEAVING * gone}{_COMING * new}{pad}"
