"""Comparisons of another control plane's decisions with this engine's: numbers by verdict, and newest differences."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain.bindings import targets_text
from engine.observer import shadow
from engine.placement.decisions import SUCCESS
from events import observations

EXAMPLES_MAX: Final = 20
"""Maximum number of examples per verdict; the newest ones are kept."""


class Report(Struct, rename="camel"):
    """Numbers of compared decisions by verdict, and the newest comparisons of each verdict except ``same``."""

    decisions: int = 0
    verdicts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(shadow.VERDICTS, 0))
    examples: dict[str, list[observations.DecisionCompared]] = {}

    def clear(self) -> None:
        """Forget all decisions, before they are read from the log again."""
        self.decisions = 0
        self.verdicts = dict.fromkeys(shadow.VERDICTS, 0)
        self.examples = {}

    def take(self, compared: observations.DecisionCompared) -> None:
        """Count a compared decision, and keep it as an example unless its verdict is ``same``."""
        self.decisions += 1
        self.verdicts[compared.verdict] = self.verdicts.get(compared.verdict, 0) + 1
        if compared.verdict != shadow.SAME:
            examples = self.examples.setdefault(compared.verdict, [])
            examples.append(compared)
            del examples[:-EXAMPLES_MAX]


def placed(result: observations.ShadowCondition) -> str:
    """Return a result of scheduling in one line: the clusters and, unless it succeeded, reason and message."""
    clusters = targets_text(result.clusters)
    return clusters if result.reason == SUCCESS else f"{clusters} ({result.reason}: {result.message})"


def differing(compared: observations.DecisionCompared) -> list[observations.ShadowReason]:
    """Return the computed reasons for the clusters whose results differ, or for all clusters if none differs."""
    placed_there, placed_here = compared.observed.clusters, compared.computed.clusters
    reasons = [
        reason_here
        for reason_here in compared.reasons
        if placed_there.get(reason_here.cluster) != placed_here.get(reason_here.cluster)
    ]
    return reasons or list(compared.reasons)


def reason(cluster_reason: observations.ShadowReason) -> str:
    """Return the filters that a cluster failed, or else its capacity, weight and kept replicas, in one line."""
    if cluster_reason.failed:
        return "; ".join(cluster_reason.failed)
    numbers = {
        "capacity": cluster_reason.allocatable,
        "weight": cluster_reason.weight,
        "kept": cluster_reason.kept,
    }
    return ", ".join(f"{name} {count}" for name, count in numbers.items() if count is not None) or "eligible"
