"""The status of what a member runs, as its own API shows it: made from the counts of its replicas."""

import msgspec

from engine.members.state import Workload
from events import times

Json = dict[str, object]


def status(held: Workload) -> Json:
    """The status of a workload: what its template says of it, and its replicas; empty where there is neither."""
    return _said(held.template.status) | (_counted(held) if held.replicas is not None else {})


def _said(text: bytes) -> Json:
    try:
        return msgspec.json.decode(text, type=Json) if text else {}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def _counted(held: Workload) -> Json:
    count = held.admitted + held.pending
    ready = held.ready
    enough = ready >= count
    since = times.to_seconds_text(held.created_ms)
    available = {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": "Deployment has minimum availability."
        if enough
        else "Deployment does not have minimum availability.",
        "lastTransitionTime": since,
        "lastUpdateTime": since,
    }
    counts: Json = {
        "observedGeneration": 1,
        "replicas": count,
        "updatedReplicas": count,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    if held.ref.kind == "Job":
        return {"active": count, "ready": ready, "startTime": since}
    if held.ref.kind != "Deployment":
        return counts
    missing: Json = {} if enough else {"unavailableReplicas": count - ready}
    return {**counts, **missing, "conditions": [available]}
