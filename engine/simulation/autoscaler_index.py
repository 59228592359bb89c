"""Index of a member's HorizontalPodAutoscalers by their targets, to find the autoscalers of a changed target."""

from engine.simulation.state import MemberState
from engine.works.autoscalers import Scaler
from events import keys


def record(state: MemberState, key: str, namespace: str, scaler: Scaler | None) -> None:
    """Index an object if it is an autoscaler, and queue its target: the autoscaler may have to scale it.

    ``scaler`` is None for an object that is no autoscaler.
    """
    forget(state, key)
    if scaler is not None:
        target = keys.binding_key(scaler.target_kind, namespace, scaler.target_name)
        state.scalers[key] = target, scaler
        state.scaled.setdefault(target, {})[key] = None
        touch(state, target)


def forget(state: MemberState, key: str) -> None:
    """Remove a changed or deleted object from the index if it is an autoscaler; queue it if it is a target."""
    former = state.scalers.pop(key, None)
    if former is not None:
        target, _ = former
        del state.scaled[target][key]
        if not state.scaled[target]:
            del state.scaled[target]
            state.to_scale.pop(target, None)
    touch(state, key)


def touch(state: MemberState, target: str) -> None:
    """Queue a changed workload for scaling if autoscalers scale it; queue reports of their statuses too."""
    scalers = state.scaled.get(target)
    if scalers:
        state.to_scale[target] = None
        state.dirty.update(scalers)
