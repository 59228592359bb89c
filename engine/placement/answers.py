"""Decisions that are known already: what a decision depends on is asked again for each workload that is like another.

A decision is a pure function of its request and of the clusters, so the same question has the same answer for as long
as nothing about the clusters changes. Workloads differ in name, seldom in what they ask for; in a storm thousands of
them leave one cluster with the same numbers.
"""

from typing import TYPE_CHECKING, Final

from engine.placement import decisions, division, facts, requests, schedule

if TYPE_CHECKING:
    from engine.placement import compiled
    from engine.placement import fleet as fleets

ANSWERS_MAX: Final = 4_096
CELLS_MAX: Final = 2**20
"""Answers that are kept, fewer for more clusters, as an answer has columns; beyond it all are forgotten."""


class Answers:
    """Decisions over one fleet by what was asked, for as long as nothing is said of its clusters."""

    def __init__(self, fleet: "fleets.Fleet") -> None:
        """Start with none."""
        self._fleet = fleet
        self._moves = fleet.moves
        self._known: dict[tuple[object, ...], decisions.Decision] = {}

    def __len__(self) -> int:
        """How many answers are kept."""
        return len(self._known)

    def decide(self, request: requests.Request) -> decisions.Decision:
        """What `schedule.schedule` gives for the request; a decision that is shared, so nothing in it may be edited."""
        fleet = self._fleet
        if len(request.current) > facts.FEW:
            # A long former result takes longer to compare than to decide about.
            return schedule.schedule(request, fleet)
        if fleet.moves != self._moves:
            self._moves = fleet.moves
            self._known.clear()
        question = _question(request, fleet.compile(request.placement))
        answer = self._known.get(question)
        if answer is None:
            if len(self._known) >= min(ANSWERS_MAX, CELLS_MAX // max(len(fleet), 1)):
                self._known.clear()
            answer = self._known[question] = schedule.schedule(request, fleet)
        return answer


def _question(request: requests.Request, masks: "compiled.Compiled") -> tuple[object, ...]:
    """All that a decision reads of a request; of names nothing but how they break ties.

    The masks stand for the placement: they are compiled once for all placements that are equal.
    """
    return (
        masks,
        request.resource.api_version,
        request.resource.kind,
        division.breaks_ties_descending(request.resource.uid),
        request.replicas,
        request.requests,
        request.components,
        request.current,
        request.evicting,
        request.observed_affinity,
        request.fresh,
        request.empty_workload_propagation,
        request.trigger,
    )
