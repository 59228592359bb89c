"""Decide the next action for one binding from its work and the observed state. Pure.

The decision is level-triggered: an entry holds the desired, the last applied and the observed state, and
intermediate changes do not matter. The caller carries out the action and updates the entry.
"""

from typing import Final, Literal

from msgspec import Struct, structs

from engine.agent import messages
from engine.agent.messages import ObjectState
from engine.kubeapi.values import resource_versions
from events.shapes import WorkloadRef

_SUSPENDED: Final = "suspended"
_UNKNOWN: Final = "?"
"""Equals no digest of fields."""


Content = tuple[str, int | None, str]
"""Digest of the template, replicas, and digest of overrides; two works with equal content need no new apply."""


class Applied(Struct, frozen=True, kw_only=True):
    """The work that was applied last, and the resulting object: its uid, and a digest of the agent's fields.

    ``is_retained``: the member decides on the number of replicas.
    """

    ref: WorkloadRef
    term: int
    step: int
    content: Content
    uid: str
    fields: str
    is_retained: bool = False


class Observed(Struct, frozen=True, kw_only=True):
    """Observed state of an object; an empty ``uid`` means that it does not exist.

    ``version`` is the object's resourceVersion. ``deleted_uid`` is the uid of the last object whose deletion was seen;
    ``version`` is then the version of the deletion, or of the list from which the object was missing.
    """

    uid: str = ""
    deleted_uid: str = ""
    version: str = ""
    fields: str = ""
    is_ending: bool = False
    state: ObjectState = ObjectState()


class Entry(Struct, kw_only=True):
    """Everything known of one binding in one cluster.

    ``ref`` is the object that the newest work with a template names; it may exist in the member although no apply
    is recorded. ``seen`` is None until the object has been observed. ``fault`` is the reason why the newest work
    could not be applied.
    """

    work: messages.Work
    ref: WorkloadRef | None = None
    applied: Applied | None = None
    reported: messages.WorkloadReport | None = None
    seen: Observed | None = None
    fault: str = ""


class Apply(Struct, frozen=True):
    """Apply the work; with ``is_drift``, because another client changed the object after the last apply."""

    is_drift: bool


class Remove(Struct, frozen=True):
    """Remove an object; if ``preserved``, remove only the agent's labels and annotations from it.

    ``is_last``: the binding is finished after this removal.
    """

    ref: WorkloadRef
    preserved: bool
    is_last: bool


class Forget(Struct, frozen=True):
    """Nothing exists and nothing is desired: report the removal and drop the entry."""


Action = Apply | Remove | Forget | Literal["settled"]


def take(entry: Entry | None, work: messages.Work, *, is_listed: bool = False) -> Entry | None:
    """Merge a work into an entry; None if the work is not newer than the known one.

    ``is_listed``: the work is from a full list, so it is the newest one also if its version is lower.
    """
    if entry is None:
        return Entry(work=work, ref=work.template)
    # The feed may repeat works after a reconnect: take only newer versions. Take a listed work even if its version is
    # lower: the log was then restored from a backup that does not contain the known work.
    if work == entry.work if is_listed else work.version <= entry.work.version:
        return None
    if work.state == _SUSPENDED and work.template is None and entry.work.template is not None:
        # A suspension keeps the content of the work before it.
        work = structs.replace(entry.work, state=_SUSPENDED, term=work.term, step=work.step)
    entry.work, entry.ref = work, work.template or entry.ref
    entry.fault = ""
    return entry


def decide(entry: Entry) -> Action:
    """The next action for a binding."""
    work, applied = entry.work, entry.applied
    match work.state:
        case "suspended":
            return "settled"
        case "removed":
            ref = applied.ref if applied else entry.ref
            if ref is None:
                return Forget()
            return Remove(ref, work.preserved, is_last=True)
        case "applied":
            if applied is None:
                return Apply(is_drift=False)
            if work.template is not None and applied.ref.identity != work.template.identity:
                return Remove(applied.ref, preserved=False, is_last=False)
            is_drift = has_drifted(entry)
            return Apply(is_drift) if is_drift or applied.content != content_of(work) else "settled"


def content_of(work: messages.Work) -> Content:
    return work.digest, work.replicas, work.overrides


def has_drifted(entry: Entry) -> bool:
    """Whether the applied object was changed by another client, is being deleted, or is gone."""
    # Compare owned fields, not values: defaulting and normalization by the API server are not drift.
    applied, seen = entry.applied, entry.seen
    if applied is None or seen is None or entry.work.state != messages.APPLIED:
        return False
    return seen.uid != applied.uid or seen.fields != applied.fields or seen.is_ending


def is_older(observed: Observed, other: Observed) -> bool:
    """Whether an observation is earlier than another one of the same object; False for non-numeric versions."""
    version, other_version = map(resource_versions.number, (observed.version, other.version))
    if observed.uid and observed.uid == other.deleted_uid:
        # A later version is not older: the object is reported as deleted when a client removes the agent's label, and
        # may get the label back.
        return version is None or other_version is None or version <= other_version
    if observed.uid != other.uid:
        return False
    return version is not None and other_version is not None and version < other_version


def forget_observed(entry: Entry) -> None:
    """Forget the observed state after a restore: its version may be higher than any of the restored API.

    The next observed state counts as drift.
    """
    entry.seen = None
    if entry.applied is not None:
        entry.applied = structs.replace(entry.applied, fields=_UNKNOWN)


def report(entry: Entry) -> messages.WorkloadReport | None:
    """The workload's report if it differs from the last one sent, else None."""
    current = _report(entry)
    return None if current == entry.reported else current


def gone_report(entry: Entry) -> messages.GoneReport | None:
    """The report that the object of a removed binding is gone; None while it may exist."""
    work = entry.work
    if work.state != "removed" or entry.applied is not None or entry.ref is not None:
        return None
    return messages.GoneReport(key=work.key, term=work.term, step=work.step)


def removed(entry: Entry) -> None:
    """Clear an entry after its object has been removed."""
    entry.applied = entry.ref = entry.seen = None
    entry.fault = ""


def _report(entry: Entry) -> messages.WorkloadReport | None:
    work, applied, seen = entry.work, entry.applied, entry.seen
    if work.state == "removed":
        return None
    if not entry.fault and (applied is None or seen is None or not seen.uid):
        return None
    # If the newest work is not applied yet, report the version whose content the object has.
    version = work.version
    how = seen.state if applied is not None and seen is not None else ObjectState()
    if (
        applied is not None
        and not entry.fault
        and work.state == "applied"
        and applied.content != content_of(work)
    ):
        version = applied.term, applied.step
    return messages.WorkloadReport(
        key=work.key,
        term=version[0],
        step=version[1],
        fault=entry.fault,
        **structs.asdict(how),
    )
