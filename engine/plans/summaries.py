"""Predictions as text, for the command line and the pages."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.plans.predictions import ClusterChange, Prediction, WorkloadChange
from events import times

_HOUR_S: Final = 3_600
_MINUTE_S: Final = 60
_NAMED_MAX: Final = 5
_RESOURCES: Final = ("cpu", "memory", "pods")


class Load(NamedTuple):
    """A change in the use of one resource of a cluster; amounts are Kubernetes quantities."""

    cluster: str
    resource: str
    before: str
    after: str
    peak: str
    allocatable: str


def summary(prediction: Prediction) -> str:
    """Return the prediction in one sentence."""
    moved = prediction.moved
    if not prediction.changed and not prediction.unplaced:
        if prediction.unrelated:
            return (
                f"No effect: {count(prediction.workloads, 'workload')} would be placed the same without this."
            )
        return f"Nothing moves: {count(prediction.workloads, 'workload')} would stay unchanged."
    stopped = sum(change.stopped for change in moved)
    parts = [
        f"{len(moved)} of {count(prediction.workloads, 'workload')} to {'move' if stopped else 'change'}"
    ]
    parts.append(f"{count(stopped, 'replica')} to stop")
    parts.append(f"{sum(change.started for change in moved)} to start")
    if prediction.unplaced:
        parts.append(f"{count(len(prediction.unplaced), 'workload')} cannot be placed")
    if disturbed := sum(map(_is_disturbed, prediction.changed)):
        parts.append(f"{count(disturbed, 'workload')} with fewer ready replicas meanwhile")
    if reduced := sum(map(_is_reduced, prediction.changed)):
        parts.append(f"{count(reduced, 'workload')} with fewer ready replicas at the end")
    return f"{', '.join(parts)}; stable after {duration(prediction.settled_ms)}."


def notes(prediction: Prediction, warnings: Sequence[str]) -> list[str]:
    """Return remarks on a prediction: warnings of its requests, rejections, its horizon, assumptions."""
    texts = [*warnings, *(f"would be rejected: {refusal}" for refusal in prediction.refused)]
    if prediction.unrelated:
        texts.append(
            f"changes not listed, which would also happen without this: {names(prediction.unrelated)}"
        )
    if not prediction.is_settled:
        texts.append(
            f"the engine has unfinished work after {duration(prediction.horizon_ms)}; predict further: --horizon"
        )
    return texts + prediction.assumptions


def most_disturbed(prediction: Prediction) -> list[WorkloadChange]:
    """Return the changed workloads, those with most moved replicas first."""
    return sorted(
        prediction.changed,
        key=lambda change: (change.stopped + change.started, change.ready_before - change.ready_min),
        reverse=True,
    )


def ready(change: WorkloadChange) -> str:
    """Return as text the ready replicas before and after a change, and the fewest in between if they are fewer.

    The text is empty for kinds without replicas.
    """
    if not any((*change.before.values(), *change.after.values(), change.ready_before, change.ready_after)):
        return ""
    text = f"ready {change.ready_before} → {change.ready_after}"
    return f"{text}, {change.ready_min} meanwhile" if _is_disturbed(change) else text


def _is_disturbed(change: WorkloadChange) -> bool:
    return change.ready_min < min(change.ready_before, change.ready_after)


def _is_reduced(change: WorkloadChange) -> bool:
    """Whether at the end fewer replicas are ready than before and than the workload should have."""
    return change.ready_after < min(change.ready_before, sum(change.after.values()) + change.missing)


def details(change: WorkloadChange) -> list[str]:
    """Return a workload's scheduling message, and a text about replicas that an eviction has not stopped yet."""
    running = ", ".join(f"{name}:{replicas}" for name, replicas in sorted(change.running.items()) if replicas)
    return [
        text
        for text in (change.message, running and f"still running until they are replaced: {running}")
        if text
    ]


def loads(clusters: Sequence[ClusterChange]) -> list[Load]:
    """Return the changes in the use of resources, in the order of ``clusters``."""
    rows: list[Load] = []
    for cluster in clusters:
        for resource in (*_RESOURCES, *sorted(cluster.after.keys() - set(_RESOURCES))):
            amounts = [
                amounts.get(resource, "0") for amounts in (cluster.before, cluster.after, cluster.peak)
            ]
            if len(set(amounts)) > 1:
                rows.append(
                    Load(cluster.name, resource, *amounts, allocatable=cluster.allocatable.get(resource, ""))
                )
    return rows


def duration(ms: int) -> str:
    """Return a duration as text: ``250 ms``, ``48 s``, ``5 min 20 s``, ``1 h 30 min``."""
    if ms < times.SECOND_MS:
        return f"{ms} ms"
    seconds = round(ms / times.SECOND_MS)
    if seconds < _MINUTE_S:
        return f"{seconds} s"
    if seconds < _HOUR_S:
        minutes, seconds = divmod(seconds, _MINUTE_S)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, seconds = divmod(seconds, _HOUR_S)
    return f"{hours} h {seconds // _MINUTE_S} min" if seconds >= _MINUTE_S else f"{hours} h"


def names(keys: Sequence[str]) -> str:
    """Return the first keys as text, with the number of the others."""
    more = len(keys) - _NAMED_MAX
    return ", ".join([*keys[:_NAMED_MAX], *([f"{more} more"] if more > 0 else [])])


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
