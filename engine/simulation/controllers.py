"""Controllers of a member that write like clients, so that the log contains their decisions."""

from engine.simulation import autoscaling, garbage_collection
from engine.simulation.state import MemberState
from events import clusters


def writes(state: MemberState, at_ms: int) -> list[clusters.MemberWrite]:
    """Return the writes that follow from changes since the last call; none while nothing can be written."""
    if state.faults.cut_off or state.spec.modelled:
        return []
    return [*autoscaling.writes(state, at_ms), *garbage_collection.writes(state, at_ms)]
