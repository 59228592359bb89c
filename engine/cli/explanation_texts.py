"""Explanations of placements as text."""

from collections.abc import Mapping

from engine.cli import output
from engine.http import summaries
from engine.placement.explanations import GroupExplanation
from engine.reconcilers.explanation_types import Explained


def story(explanation: Explained) -> list[str]:
    """Lines about the decision, such as its time, its trigger, and its result."""
    basis, mode = explanation.basis, explanation.mode
    lines = [
        f"Binding:   {explanation.key}",
        f"Decided:   {summaries.decided(explanation)}",
        f"Basis:     step {basis.step} of shard {basis.shard}, rules {basis.release}",
        f"Trigger:   {explanation.trigger}{f' ({mode})' if mode else ''}",
        *_replicas(explanation),
        f"Before:    {counts(explanation.previous)}",
        f"Result:    {summaries.result(explanation, counts(explanation.clusters))}",
    ]
    if explanation.condition:
        lines.append(f"Condition: {explanation.condition}")
    if explanation.message:
        lines.append(f"Message:   {explanation.message}")
    lines += [f"Overrides: {name}: {', '.join(values)}" for name, values in explanation.overrides.items()]
    lines += [f"Required:  by {by}: {', '.join(values)}" for by, values in explanation.required_by.items()]
    lines += [f"State:     {name}: {_labels(labels)}" for name, labels in explanation.labels.items()]
    for name, labels in explanation.not_preserved.items():
        lines.append(f"State:     not preserved from {name}: {_labels(labels)}")
    lines += [f"{f'{heading}:':<11}{text}" for heading, text in summaries.further_lines(explanation)]
    return lines


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={labels[name]}" for name in sorted(labels))


def show_group(group: GroupExplanation, refusal: str = "") -> None:
    """Print an affinity group that was tried: each cluster with its numbers, or with the reasons that exclude it.

    ``refusal`` is the reason why the result for the group was not applied; empty if it was applied.
    """
    output.print_line("")
    output.print_line(output.clean(summaries.group_title(group, refusal)))
    if group.error:
        output.print_line(output.clean(f"  {group.error}"))
    rows = [
        (
            cluster.name,
            *(
                "-" if value in {None, ""} else value
                for value in (
                    cluster.replicas,
                    cluster.weight,
                    cluster.kept,
                    summaries.free_replicas(cluster),
                    cluster.score,
                )
            ),
            "; ".join(summaries.failures(cluster)) or "-",
        )
        for cluster in group.clusters
    ]
    output.table(("CLUSTER", "REPLICAS", "WEIGHT", "KEPT", "CAPACITY", "SCORE", "FAILED"), rows, wraps=True)


def _replicas(explanation: Explained) -> list[str]:
    """A line about the replicas and the resources that each requests; empty for kinds without replicas."""
    if explanation.requests is None and not explanation.replicas:
        return []
    amounts = ", ".join(f"{name}={amount}" for name, amount in (explanation.requests or {}).items())
    return [f"Replicas:  {explanation.replicas}{f', each with {amounts}' if amounts else ''}"]


def counts(clusters: Mapping[str, int]) -> str:
    """Clusters in one line, with their replicas if there are any."""
    return summaries.spread(clusters, ":")
