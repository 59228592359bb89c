"""Predictions in one sentence."""

from typing import Final

from engine.plans.predictions import Prediction
from events import times

_HOUR_S: Final = 3_600
_MINUTE_S: Final = 60


def summary(prediction: Prediction) -> str:
    """Return the prediction in one sentence."""
    moved = prediction.moved
    if not prediction.changed and not prediction.unplaced:
        return f"Nothing moves: {_count(prediction.workloads, 'workload')} would stay as they are."
    parts = [f"{len(moved)} of {_count(prediction.workloads, 'workload')} to move"]
    parts.append(f"{_count(sum(each.stopped for each in moved), 'replica')} to stop")
    parts.append(f"{sum(each.started for each in moved)} to start")
    if prediction.unplaced:
        parts.append(f"{len(prediction.unplaced)} cannot be placed")
    disturbed = sum(1 for each in prediction.changed if each.ready_min < each.ready_before)
    if disturbed:
        parts.append(f"{disturbed} with fewer ready replicas meanwhile")
    return f"{', '.join(parts)}; settled after {duration(prediction.settled_ms)}."


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
