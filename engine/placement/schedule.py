"""One decision: affinity groups are tried in order until one succeeds.

The first group, what counts as success and which error is reported are as in Karmada's scheduler. Pure: the
same request and the same clusters always give the same decision.
"""

from engine.placement import attempts, compiled, decisions, failures, requests, triggers
from engine.placement import explain as explaining
from engine.placement import fleet as fleets


def schedule(request: requests.Request, fleet: fleets.Fleet, *, explain: bool = False) -> decisions.Decision:
    """Return the decision for a workload.

    Never raises for valid requests and clusters: the decision's condition reports a failure.
    """
    if request.trigger == triggers.NONE:
        return decisions.Decision(
            current=request.current,
            chosen=None,
            trigger=request.trigger,
            fresh=request.fresh,
            affinity_name=request.observed_affinity,
        )
    masks = fleet.compile(request.placement)
    tried_groups: list[attempts.Attempt] = []
    first = first_group(request, masks)
    for group in range(first, len(masks.groups)):
        attempt = attempts.Attempt(request, masks, group, fleet)
        tried_groups.append(attempt)
        if attempt.error is None:
            break
    explanation = explaining.explain(request, tried_groups, fleet) if explain else None
    if tried_groups[-1].error is None:
        return _success(request, tried_groups, first, explanation)
    return _failure(request, tried_groups, first, explanation, fleet)


def first_group(request: requests.Request, masks: compiled.Compiled) -> int:
    """Return the index of the first group to try: the last successful one; 0 in fresh mode or if it does not exist."""
    if request.fresh:
        return 0
    names = [group.name for group in masks.groups]
    return names.index(request.observed_affinity) if request.observed_affinity in names else 0


def _failed(tried: list[attempts.Attempt], first: int) -> tuple[tuple[int, str], ...]:
    """Return (index, message) of the failed groups; empty without groups. ``first`` is the index of ``tried[0]``."""
    return tuple(
        (index, str(attempt.error))
        for index, attempt in enumerate(tried, first)
        if attempt.error is not None and attempt.group.name
    )


def _success(
    request: requests.Request,
    tried: list[attempts.Attempt],
    first: int,
    explanation: explaining.Explanation | None,
) -> decisions.Decision:
    attempt = tried[-1]
    return decisions.Decision(
        current=request.current,
        chosen=attempt.result,
        trigger=request.trigger,
        fresh=request.fresh,
        affinity_name=attempt.group.name,
        status="True",
        reason=decisions.SUCCESS,
        message=decisions.SCHEDULED_MESSAGE,
        records_placement=True,
        excluded=attempt.candidates.excluded,
        failed=_failed(tried, first),
        explanation=explanation,
    )


def _failure(
    request: requests.Request,
    tried: list[attempts.Attempt],
    first: int,
    explanation: explaining.Explanation | None,
    fleet: fleets.Fleet,
) -> decisions.Decision:
    """Return a decision with the first group's error; the binding loses its clusters if none passed the filters."""
    error = tried[0].error or failures.PlacementError("nothing was tried")
    unfit = error.reason == failures.NO_CLUSTER_FIT
    return decisions.Decision(
        current=request.current,
        chosen=decisions.nothing(fleet.name_column) if unfit else None,
        trigger=request.trigger,
        fresh=request.fresh,
        affinity_name=request.observed_affinity,
        status="False",
        reason=error.reason,
        message=str(error),
        retry=not unfit,
        is_open=any(attempt.error and attempt.error.reason != failures.NO_CLUSTER_FIT for attempt in tried),
        records_placement=unfit,
        excluded=tried[0].candidates.excluded,
        failed=_failed(tried, first),
        explanation=explanation,
    )
