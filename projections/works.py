"""Projection of works: what each cluster must run now."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks, namespaces
from events import decisions, ids, keys, shapes, vocabulary
from events import works as events
from events.records import Envelope
from projections.bindings import Binding
from projections.port import Queryable, Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = """
CREATE TABLE works (
    cluster INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (cluster, id)
) WITHOUT ROWID;
CREATE INDEX works_of_key ON works (id);
CREATE INDEX works_by_name ON works (cluster, name);
CREATE TABLE overridden (
    policy TEXT NOT NULL,
    cluster INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (policy, cluster, id)
) WITHOUT ROWID;
"""

_OF_NAMESPACES: Final = """
SELECT w.id FROM works w JOIN objects o ON o.id = w.id WHERE w.cluster = ? AND o.api_version = ? AND o.kind = ?
"""

_STORED: Final = """
SELECT w.body FROM works w JOIN keys c ON c.id = w.cluster JOIN keys k ON k.id = w.id WHERE c.key = ? AND k.key = ?
"""
_KEY: Final = """
SELECT k.key FROM keys c JOIN works w INDEXED BY works_by_name ON w.cluster = c.id JOIN keys k ON k.id = w.id
WHERE c.key = ? AND w.name = ?
"""

WorkKeyIds = tuple[int, int]
"""The key ids of a work's cluster and of its binding."""


class Work(Struct, frozen=True, array_like=True, gc=False):
    """A work; (term, step) is its version. The record of its template is at ``offset`` in partition ``shard`` of specs.

    ``number`` is that of the last record that changed the rendered work. ``claim`` and ``binding_uid`` are
    the binding's. ``generation`` counts the events that changed what the cluster gets. ``member`` is the cluster's
    report in the binding's status, None before the first. The condition Applied last changed at ``applied_ms``, the
    condition Dispatching at ``dispatching_ms``.
    """

    number: int
    template: shapes.WorkloadRef
    shard: int
    offset: int
    digest: str
    term: int
    step: int
    replicas: int | None
    suspended: bool = False
    uid: str = ""
    generation: int = 1
    created_ms: int = 0
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None
    claim: marks.Claim = marks.NO_CLAIM
    binding_uid: str = ""
    overwrites: bool = False
    member: decisions.MemberStatus | None = None
    applied_ms: int = 0
    dispatching_ms: int = 0
    completions: int | None = None

    @property
    def name(self) -> str:
        """The name of the Work object, which is in the namespace of its cluster."""
        return marks.work_name(self.template.kind, self.template.namespace, self.template.name)


decode: Final = msgspec.json.Decoder(Work).decode


def stored(rows: Queryable, cluster: str, key: str) -> Work | None:
    """Return the work of a binding in a cluster; None if there is none."""
    matches = rows.select(_STORED, (keys.cluster_key(cluster), key))
    return decode(matches[0][0]) if matches else None


def key_of(rows: Queryable, cluster: str, name: str) -> str | None:
    """Return the key of the binding of the Work object with this name in a cluster; None if there is no such work."""
    matches = rows.select(_KEY, (keys.cluster_key(cluster), name))
    return matches[0][0] if matches else None


class Works(WorkingSet[WorkKeyIds, Work]):
    """Folds works."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, "works", decode, lambda work: (work.name,), ("cluster", "id"))
        self._new: dict[int, set[int]] = {}
        self._overridden: dict[str, dict[WorkKeyIds, bool]] = {}

    def take(
        self,
        where: WorkKeyIds,
        number: int,
        at_ms: int,
        head: Envelope,
        data: events.Work,
        binding: Binding | None,
    ) -> bool:
        """Fold a work that is in effect; ``where`` has the key ids of its cluster and its binding.

        Return False, without effect, if the work is of an older version than the current one.
        """
        previous = self.get(where)
        # Works of an older step may arrive late in the sequence; the newest version stays.
        if previous is not None and (data.term, data.step) < (previous.term, previous.step):
            return False
        match data:
            case events.WorkRemoved():
                self._put(where, previous, None)
                return True
            case events.WorkApplied():
                work = _sent(data)
            case events.WorkSuspended(pending=pending):
                work = previous or _unsent(data, binding) if pending is None else _sent(pending)
        if work is not None:
            is_suspended = isinstance(data, events.WorkSuspended)
            work = msgspec.structs.replace(
                work,
                number=number,
                term=data.term,
                step=data.step,
                suspended=is_suspended,
                dispatching_ms=at_ms
                if previous is None or previous.suspended != is_suspended
                else previous.dispatching_ms,
            )
            self._put(where, previous, _continued(work, previous, at_ms, head, data.key, binding))
        return True

    def report(
        self, where: WorkKeyIds, number: int, at_ms: int, member: decisions.MemberStatus | None
    ) -> bool:
        """Store the cluster's report; return whether it changes the rendered work."""
        previous = self.get(where)
        if previous is None or previous.member == member:
            return False
        before, after = (None if side is None else side.applied for side in (previous.member, member))
        applied_ms = previous.applied_ms if before == after else at_ms
        updated = msgspec.structs.replace(previous, number=number, member=member, applied_ms=applied_ms)
        self._put(where, previous, updated)
        return True

    def bind(self, where: WorkKeyIds, number: int, binding: Binding) -> bool:
        """Copy the claim of its binding into a work; return whether that changes the rendered work."""
        previous = self.get(where)
        claim = claim_of(binding)
        if previous is None or previous.claim == claim:
            return False
        self._put(where, previous, msgspec.structs.replace(previous, number=number, claim=claim))
        return True

    def touch(self, where: WorkKeyIds, number: int) -> None:
        """Set the number of a work that is rendered differently because its template or an override policy changed."""
        previous = self.get(where)
        if previous is not None:
            self._put(where, previous, msgspec.structs.replace(previous, number=number))

    def add(self, where: WorkKeyIds, work: Work) -> None:
        """Add a work; no work may exist at ``where`` yet."""
        self._put(where, None, work)

    def remove(self, where: WorkKeyIds) -> Work | None:
        """Remove a work and return it; None if there is none."""
        previous = self.get(where)
        if previous is not None:
            self._put(where, previous, None)
        return previous

    def of_namespaces(self, member: int) -> list[WorkKeyIds]:
        """Return the works of namespaces in a cluster; ``member`` is the id of the cluster's key."""
        rows = self._rows.select(_OF_NAMESPACES, (member, *namespaces.KIND))
        changed = {where for where, work in self.unwritten() if where[0] == member and _is_of_namespace(work)}
        return [
            where
            for where in sorted({*((member, key_id) for (key_id,) in rows), *changed})
            if self.get(where) is not None
        ]

    def of_key(self, key_id: int) -> list[WorkKeyIds]:
        """Return the works of a binding."""
        rows = self._rows.select("SELECT cluster FROM works WHERE id = ?", (key_id,))
        clusters = {cluster for (cluster,) in rows} | self._new.get(key_id, set())
        return [where for cluster in sorted(clusters) if self.get(where := (cluster, key_id)) is not None]

    def overridden_by(self, kind: str, namespace: str, name: str) -> list[WorkKeyIds]:
        """Return the works to which an override policy applies."""
        policy = _policy(kind, namespace, name)
        rows = self._rows.select("SELECT cluster, id FROM overridden WHERE policy = ?", (policy,))
        works = dict.fromkeys(rows, True) | self._overridden.get(policy, {})
        return [where for where, is_overridden in sorted(works.items()) if is_overridden]

    def flush(self, rows: Rows) -> None:
        """Write the changed works and the index of works by override policy."""
        self._flush_overridden(rows)
        super().flush(rows)
        self._new, self._overridden = {}, {}

    def _put(self, where: WorkKeyIds, previous: Work | None, updated: Work | None) -> None:
        self.put(where, updated)
        self._new.setdefault(where[1], set()).add(where[0])
        for ref in previous.overrides if previous is not None else ():
            self._overridden.setdefault(_policy(ref.kind, ref.namespace, ref.name), {})[where] = False
        for ref in updated.overrides if updated is not None else ():
            self._overridden.setdefault(_policy(ref.kind, ref.namespace, ref.name), {})[where] = True

    def _flush_overridden(self, rows: Rows) -> None:
        deleted: list[Row] = []
        stored: list[Row] = []
        for policy, is_overridden in sorted(self._overridden.items()):
            deleted += [(policy, *where) for where in sorted(is_overridden) if not is_overridden[where]]
            stored += [(policy, *where) for where in sorted(is_overridden) if is_overridden[where]]
        rows.write("DELETE FROM overridden WHERE policy = ? AND cluster = ? AND id = ?", deleted)
        rows.write("INSERT OR IGNORE INTO overridden VALUES (?, ?, ?)", stored)


def _is_of_namespace(work: Work | None) -> bool:
    return work is not None and (work.template.api_version, work.template.kind) == namespaces.KIND


def claim_of(binding: Binding | None) -> marks.Claim:
    """Return the parts of a binding's claim that its rendered works contain; ``NO_CLAIM`` without a binding."""
    if binding is None:
        return marks.NO_CLAIM
    claim = binding.claim
    policy, policy_id = (claim.policy, claim.permanent_id) if claim is not None else (None, "")
    return marks.Claim(policy, policy_id, binding.preserves)


def _continued(
    work: Work, previous: Work | None, at_ms: int, head: Envelope, key: str, binding: Binding | None
) -> Work:
    """Return ``work`` with its binding's claim, and with uid, creation time and report of ``previous``, if any."""
    work = msgspec.structs.replace(
        work,
        uid=previous.uid if previous else ids.object_uid(head.source, head.id, key),
        generation=previous.generation + 1 if previous else 1,
        created_ms=previous.created_ms if previous else at_ms,
        claim=claim_of(binding),
        binding_uid=binding.uid if binding else "",
    )
    if previous is None:
        return work
    return msgspec.structs.replace(work, member=previous.member, applied_ms=previous.applied_ms)


def _sent(data: events.WorkApplied) -> Work:
    """Return the content of a work that is sent to its cluster, or will be after its suspension."""
    return Work(
        0,
        data.template,
        data.shard,
        data.offset,
        data.digest,
        data.term,
        data.step,
        data.replicas,
        overrides=data.overrides,
        labels=data.labels,
        reading=data.reading,
        overwrites=data.overwrites,
        completions=data.completions,
    )


def _unsent(data: events.WorkSuspended, binding: Binding | None) -> Work | None:
    """Return the work for a suspension before the first dispatch of the binding; None without a binding.

    Only for records of releases before 0.6.0, which do not contain the pending work.
    """
    if binding is None:
        return None
    ref = binding.template
    replicas = None if (ref.api_version, ref.kind) == vocabulary.POD else binding.replicas
    return Work(0, ref, 0, 0, "", data.term, data.step, replicas)


def _policy(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}"
