"""Values for the page about the decisions of an observed control plane. No HTTP here."""

from typing import Final

from msgspec import Struct

from engine.observer import report as reports
from engine.observer import shadow
from events import keys, observations

METER_PIXELS: Final = 240
_BADGES: Final = {
    shadow.SAME: "scheduled",
    shadow.RACE: "waiting",
    shadow.KNOWN: "waiting",
    shadow.UNEXPLAINED: "failed",
}
_MEANINGS: Final = {
    shadow.SAME: "Reballast decides the same.",
    shadow.RACE: "Its scheduler decided from a cache that lagged behind its API.",
    shadow.KNOWN: "A documented difference.",
    shadow.UNEXPLAINED: "No reason is known.",
}


class Verdict(Struct, frozen=True, kw_only=True):
    """The decisions with a verdict, and their share."""

    name: str
    badge: str
    meaning: str
    count: int
    percent: str
    pixels: int


class Example(Struct, frozen=True, kw_only=True):
    """A decision that differs: both results, the cause, and our reasons by cluster; ``key`` is its binding's."""

    verdict: str
    badge: str
    key: str
    binding: str
    version: int
    why: str
    observed: str
    computed: str
    reasons: list[tuple[str, str]]


class Shown(Struct, frozen=True, kw_only=True):
    """The report as the page shows it; examples with the newest first, unexplained ones before the others."""

    decisions: int
    verdicts: list[Verdict]
    examples: list[Example]


def shown(report: reports.Report) -> Shown:
    """Return the values of the page."""
    decisions = [
        (verdict, compared)
        for verdict in reversed(shadow.VERDICTS)
        # A copy: the observer adds to the list meanwhile.
        for compared in reversed(tuple(report.examples.get(verdict, ())))
    ]
    return Shown(
        decisions=report.decisions,
        verdicts=[_verdict(name, count, report.decisions) for name, count in report.verdicts.items()],
        examples=[_example(verdict, compared) for verdict, compared in decisions],
    )


def _verdict(name: str, count: int, total: int) -> Verdict:
    return Verdict(
        name=name,
        badge=_BADGES.get(name, "waiting"),
        meaning=_MEANINGS.get(name, ""),
        count=count,
        percent=f"{count / max(total, 1):.2%}",
        pixels=max(METER_PIXELS * count // max(total, 1), 1) if count else 0,
    )


def _example(verdict: str, compared: observations.DecisionCompared) -> Example:
    key = compared.timeline_key
    return Example(
        verdict=verdict,
        badge=_BADGES.get(verdict, "waiting"),
        key=key,
        binding=keys.full_name(*keys.split(key)),
        version=compared.version,
        why=compared.why,
        observed=reports.placed(compared.observed),
        computed=reports.placed(compared.computed),
        reasons=[(each.cluster, reports.reason(each)) for each in reports.differing(compared)],
    )
