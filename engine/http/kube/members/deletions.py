"""Deletion of objects in a member under a propagation policy: pure functions from the state to the writes."""

from typing import Final, NamedTuple

from engine.http.kube.members import object_edits
from engine.simulation import garbage_collection, unmanaged
from engine.simulation.state import MemberState
from engine.writing import object_changes
from events import clusters, shapes
from events.json_values import Json
from events.kube_objects import KubeObject

_ORPHAN: Final = "Orphan"
_CRON_JOB: Final = "CronJob"
_LOST: Final = (
    "the simulation of {} keeps no pods and Jobs of a CronJob, of an object with finalizers, or of one that the"
    " control plane left behind: those of {} are deleted with it"
)
_FOREGROUND: Final = "Foreground"


class Deletion(NamedTuple):
    """The writes of a deletion; ``is_final``: the object is deleted at once, without waiting for finalizers.

    ``warning`` names the dependents that are deleted although the client asked to orphan them.
    """

    writes: list[clusters.MemberWrite]
    is_final: bool
    is_managed: bool
    warning: str = ""


def of(state: MemberState, ref: shapes.WorkloadRef, live: KubeObject, options: Json, now_ms: int) -> Deletion:
    """Return the deletion of an object: Orphan keeps its dependents, Foreground deletes them first."""
    cluster = state.spec.name
    key, uid = unmanaged.key_of(ref), live.uid
    policy = options.get("propagationPolicy")
    is_orphaning = policy == _ORPHAN or options.get("orphanDependents") is True
    is_managed = unmanaged.managed(state, key) is not None
    owned = garbage_collection.dependents(state, key, uid)
    result: list[clusters.MemberWrite] = []
    if is_orphaning:
        result += [garbage_collection.without(cluster, each, uid) for each in owned]
    finalizers = live.list_at("metadata", "finalizers")
    if owned and policy == _FOREGROUND and garbage_collection.FOREGROUND not in finalizers:
        finalizers = [*finalizers, garbage_collection.FOREGROUND]
    warning = ""
    if is_orphaning and not is_managed and (ref.kind == _CRON_JOB or finalizers or key in state.workloads):
        warning = _LOST.format(cluster, f"{ref.kind} {ref.name}")
    if finalizers and not is_managed:
        if not live.is_ending:
            marked = object_changes.marked(live.with_metadata({"finalizers": finalizers}), now_ms)
            item = state.unmanaged.get(key)
            result.append(object_edits.written(cluster, item, marked, has_status=False))
        return Deletion(result, is_final=False, is_managed=False, warning=warning)
    result.append(clusters.MemberObjectDeleted(name=cluster, object=ref, orphans=is_orphaning))
    return Deletion(result, is_final=True, is_managed=is_managed, warning=warning)
