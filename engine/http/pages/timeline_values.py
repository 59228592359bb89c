"""Values for timelines and explanations on the pages. No HTTP here."""

import msgspec
from msgspec import Struct

from engine.http import summaries
from engine.http.query.record_json import Entry
from events.json_values import Json, object_at, objects_at, texts


class Event(Struct, frozen=True, kw_only=True):
    """A record of the log as a row; ``cause`` is the position of the record that led to it."""

    number: int
    time: str
    name: str
    position: str
    cause: str
    summary: str


class Seat(Struct, frozen=True, kw_only=True):
    """A cluster in an explanation: its numbers, or in ``failed`` the reasons that excluded it.

    ``kept`` are replicas that it had before; ``room`` is its free capacity.
    """

    cluster: str
    chosen: bool
    replicas: str
    weight: str
    kept: str
    capacity: str
    score: str
    failed: list[str]


class Group(Struct, frozen=True, kw_only=True):
    """One affinity group that the scheduler tried."""

    title: str
    error: str
    seats: list[Seat]


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a binding was placed as it is: facts about the decision, and the affinity groups that were tried."""

    facts: list[tuple[str, str]]
    groups: list[Group]


def event(entry: Entry) -> Event:
    plain = msgspec.json.decode(msgspec.json.encode(entry), type=Json)
    return Event(
        number=entry.number,
        time=entry.time,
        name=summaries.event_name(entry.type) or "malformed",
        position=entry.position,
        cause=entry.cause,
        summary=summaries.summary(plain, is_named=False),
    )


def explanation(explained: Struct) -> Explanation:
    """Convert the inquiry's explanation for display."""
    document = msgspec.json.decode(msgspec.json.encode(explained), type=Json)
    basis, mode = object_at(document, "basis"), document.get("mode")
    facts = [
        ("Result", _counts(object_at(document, "clusters"))),
        ("Before", _counts(object_at(document, "previous"))),
        ("Trigger", f"{document.get('trigger')}{f' ({mode})' if mode else ''}"),
        ("Overrides", _by_name(object_at(document, "overrides"))),
        ("Required by", _by_name(object_at(document, "requiredBy"))),
        ("Message", str(document.get("message") or "")),
        *summaries.preemption_lines(document),
        ("Decided", f"{basis.get('time')}, number {basis.get('number')} of the log"),
        ("Basis", f"step {basis.get('step')} of shard {basis.get('shard')}, rules {basis.get('release')}"),
    ]
    groups = [_group(group) for group in objects_at(document, "explanation", "groups")]
    return Explanation(facts=[fact for fact in facts if fact[1]], groups=groups)


def _group(group: Json) -> Group:
    name = f"Group {group['affinityName']}" if group.get("affinityName") else "Clusters"
    steps = ", ".join(f"{step.get('kind')} of {step.get('seats')}" for step in objects_at(group, "steps"))
    return Group(
        title=f"{name}: {steps}" if steps else name,
        error=str(group.get("error") or ""),
        seats=[_seat(step) for step in objects_at(group, "clusters")],
    )


def _seat(cluster: Json) -> Seat:
    def number(name: str) -> str:
        return str(cluster.get(name, ""))

    return Seat(
        cluster=number("name"),
        chosen=bool(cluster.get("replicas"))
        or (cluster.get("selected") is True and "replicas" not in cluster),
        replicas=number("replicas"),
        weight=number("weight"),
        kept=number("kept"),
        capacity=number("allocatable"),
        score=number("score"),
        failed=summaries.failures(cluster),
    )


def _counts(clusters: Json) -> str:
    return ", ".join(f"{name}: {count}" for name, count in clusters.items()) or "nowhere"


def _by_name(lists: Json) -> str:
    return "; ".join(f"{name}: {', '.join(texts(names))}" for name, names in lists.items())
