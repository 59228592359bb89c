"""Explanations of placements as text."""

from typing import cast

from engine.cli import output
from engine.http import summaries
from events.json_values import Json, list_at, object_at, objects_at


def story(explanation: Json) -> list[str]:
    """Lines about the decision: when, on which basis, and its result."""
    basis = object_at(explanation, "basis")
    clusters, mode = object_at(explanation, "clusters"), explanation.get("mode")
    lines = [
        f"Binding:   {explanation.get('key')}",
        f"Decided:   {basis.get('time')}, at number {basis.get('number')} of the log",
        f"Basis:     step {basis.get('step')} of shard {basis.get('shard')}, rules {basis.get('release')}",
        f"Trigger:   {explanation.get('trigger')}{f' ({mode})' if mode else ''}",
        f"Replicas:  {explanation.get('replicas')}{_requests(object_at(explanation, 'requests'))}",
        f"Before:    {counts(object_at(explanation, 'previous'))}",
        f"Result:    {counts(clusters)}",
    ]
    if explanation.get("condition"):
        lines.append(f"Condition: {explanation['condition']}")
    if explanation.get("message"):
        lines.append(f"Message:   {explanation['message']}")
    overrides = object_at(explanation, "overrides")
    lines += [
        f"Overrides: {name}: {', '.join(map(str, list_at(values)))}" for name, values in overrides.items()
    ]
    required_by = object_at(explanation, "requiredBy")
    lines += [
        f"Required:  by {by}: {', '.join(map(str, list_at(values)))}" for by, values in required_by.items()
    ]
    for name, values in object_at(explanation, "labels").items():
        lines.append(f"State:     {name}: {_labels(values)}")
    for name, values in object_at(explanation, "notPreserved").items():
        lines.append(f"State:     not preserved from {name}: {_labels(values)}")
    lines += [f"{f'{heading}:':<11}{text}" for heading, text in summaries.preemption_lines(explanation)]
    return lines


def _labels(value: object) -> str:
    labels = cast("Json", value) if isinstance(value, dict) else {}
    return ", ".join(f"{name}={labels[name]}" for name in sorted(labels))


def show_group(group: Json) -> None:
    """Print the clusters of a group that was tried, each with what speaks for and against it."""
    title = f"Group {group['affinityName']}" if group.get("affinityName") else "Clusters"
    steps = ", ".join(f"{step.get('kind')} of {step.get('seats')}" for step in objects_at(group, "steps"))
    output.print_line("")
    output.print_line(output.clean(f"{title}{f': {steps}' if steps else ''}"))
    if group.get("error"):
        output.print_line(output.clean(f"  {group['error']}"))
    rows = [
        (
            cluster.get("name"),
            cluster.get("replicas", "-"),
            cluster.get("weight", "-"),
            cluster.get("kept", "-"),
            cluster.get("allocatable", "-"),
            cluster.get("score", "-"),
            "; ".join(summaries.failures(cluster)) or "-",
        )
        for cluster in objects_at(group, "clusters")
    ]
    output.table(("CLUSTER", "REPLICAS", "WEIGHT", "KEPT", "CAPACITY", "SCORE", "FAILED"), rows, wraps=True)


def _requests(requests: Json) -> str:
    # cpu requests are in thousandths of a core, all others in whole units.
    amounts = ", ".join(f"{name}={value}{'m' if name == 'cpu' else ''}" for name, value in requests.items())
    return f", each with {amounts}" if amounts else ""


def counts(clusters: Json) -> str:
    """Clusters with their replicas in one line."""
    return ", ".join(f"{name}:{count}" for name, count in clusters.items()) or "nowhere"
