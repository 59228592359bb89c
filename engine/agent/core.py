"""What an agent does about one binding: works and what was seen in the member in, the next action out. Pure.

Level-triggered: an entry says what is wanted, what was applied and what stands there now; whatever happened in between
does not matter. The shell carries an action out and tells the entry what came of it.
"""

from typing import Final, Literal

from msgspec import Struct, structs

from engine.agent import statuses, wire
from engine.agent.statuses import Standing
from events.shapes import WorkloadRef

_APPLIED: Final = "applied"
_SUSPENDED: Final = "suspended"


Content = tuple[str, int | None, str]
"""What makes one work's object another one than the next's: the template's digest, replicas, what differs here."""


class Applied(Struct, frozen=True, kw_only=True):
    """What was applied last, and the object that it became: its uid, and a digest of the fields that we own.

    ``is_retained`` says that the number of replicas is left to the member.
    """

    ref: WorkloadRef
    term: int
    step: int
    content: Content
    uid: str
    fields: str
    is_retained: bool = False


class Seen(Struct, frozen=True, kw_only=True):
    """What stands in the member: empty ``uid`` for nothing. ``version`` is the object's own."""

    uid: str = ""
    version: str = ""
    fields: str = ""
    is_ending: bool = False
    standing: Standing = statuses.Standing()


class Entry(Struct, kw_only=True):
    """All that is known of one binding in one cluster.

    ``ref`` is the object that any work ever named: it may be there, applied or not. ``seen`` is None until the member
    was looked at. ``fault`` is why the newest work could not be applied.
    """

    work: wire.Work
    ref: WorkloadRef | None = None
    applied: Applied | None = None
    reported: wire.WorkloadReport | None = None
    seen: Seen | None = None
    fault: str = ""


class Apply(Struct, frozen=True):
    """Apply the work; ``is_drift`` where that was done before, and somebody changed it since."""

    is_drift: bool


class Remove(Struct, frozen=True):
    """Remove an object, or leave it to the cluster; ``is_last`` where nothing is wanted afterwards."""

    ref: WorkloadRef
    preserved: bool
    is_last: bool


class Forget(Struct, frozen=True):
    """Nothing is there and nothing is wanted: say so, and forget the binding."""


Action = Apply | Remove | Forget | Literal["settled"]


def take(entry: Entry | None, work: wire.Work) -> Entry | None:
    """The entry after a work was told; None where it is an older one than is known, or the same."""
    if entry is None:
        return Entry(work=work, ref=work.template)
    if work.version <= entry.work.version:
        return None
    if work.told == _SUSPENDED and work.template is None and entry.work.told == _APPLIED:
        # What a suspension holds back is the work before it.
        work = structs.replace(entry.work, told=_SUSPENDED, term=work.term, step=work.step)
    entry.work, entry.ref = work, work.template or entry.ref
    entry.fault = ""
    return entry


def decide(entry: Entry) -> Action:
    """What is to be done now."""
    work, applied = entry.work, entry.applied
    match work.told:
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
            if work.template is not None and not _is_same(applied.ref, work.template):
                return Remove(applied.ref, preserved=False, is_last=False)
            if applied.content != content_of(work):
                return Apply(is_drift=False)
            return Apply(is_drift=True) if is_adrift(entry) else "settled"


def content_of(work: wire.Work) -> Content:
    """What a work wants to stand."""
    return work.digest, work.replicas, work.overrides


def is_adrift(entry: Entry) -> bool:
    """Whether what was applied stands there otherwise, or not at all."""
    applied, seen = entry.applied, entry.seen
    if applied is None or seen is None or entry.work.told != _APPLIED:
        return False
    return seen.uid != applied.uid or seen.fields != applied.fields or seen.is_ending


def report(entry: Entry) -> wire.WorkloadReport | None:
    """What there is to say of a binding now; None for nothing, or nothing new."""
    found = _report(entry)
    return None if found == entry.reported else found


def gone(entry: Entry) -> wire.GoneReport | None:
    """That a binding is removed, once nothing is there any more; None before."""
    work = entry.work
    if work.told != "removed" or entry.applied is not None or entry.ref is not None:
        return None
    return wire.GoneReport(key=work.key, term=work.term, step=work.step)


def removed(entry: Entry) -> None:
    """Nothing of a binding is there any more."""
    entry.applied = entry.ref = entry.seen = None
    entry.fault = ""


def _report(entry: Entry) -> wire.WorkloadReport | None:
    work, applied, seen = entry.work, entry.applied, entry.seen
    if work.told == "removed":
        return None
    if not entry.fault and (applied is None or seen is None or not seen.uid):
        return None
    version, how = work.version, seen.standing if seen is not None else Standing()
    if (
        applied is not None
        and not entry.fault
        and work.told == "applied"
        and applied.content != content_of(work)
    ):
        version = applied.term, applied.step
    return wire.WorkloadReport(
        key=work.key,
        term=version[0],
        step=version[1],
        replicas=how.replicas,
        updated=how.updated,
        ready=how.ready,
        available=how.available,
        healthy=how.healthy,
        fault=entry.fault,
        values=how.values,
    )


def _is_same(one: WorkloadRef, other: WorkloadRef) -> bool:
    """Whether two references name one object, in whichever version of its group."""
    return (one.kind, one.name, one.namespace, _group(one)) == (
        other.kind,
        other.name,
        other.namespace,
        _group(other),
    )


def _group(ref: WorkloadRef) -> str:
    return ref.api_version.rpartition("/")[0]
