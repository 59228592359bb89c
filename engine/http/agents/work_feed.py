"""The feed of works of one cluster, for its agent.

Without a position, the feed lists all works and then sends each change; with a position in the log it sends only the
changes after it.
"""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

import anyio
import msgspec

from engine.agent import messages
from engine.domain import marks
from engine.http.member_namespaces import NamespaceChanges
from engine.works.manifests import Rendered
from engine.writing.read_side import ReadSide
from events import codec, keys, records, shapes, topics, works
from events.json_values import canonical_json
from events.kube_objects import KubeObject
from events.records import StoredRecord
from projections import agent_queries
from projections import query as queries
from projections.steps import foreign_works
from projections.works import Work

_BATCH_RECORDS: Final = 512
_QUIET_SECONDS: Final = 15
"""Longest silence of the feed; after it a line with the position is sent, so that both ends notice a dead peer."""


class WorkFeed:
    """Reads the works of clusters from the views and the log."""

    def __init__(self, reads: ReadSide) -> None:
        self._reads = reads
        self._namespace_changes = NamespaceChanges(reads)

    async def follow(
        self, name: str, after: int | None, may_read: Callable[[], Awaitable[bool]], *, is_leaving: bool
    ) -> AsyncGenerator[bytes]:
        """Yield the lines of a cluster's feed after a position in the log; without a position, begin with a list.

        ``may_read`` is called before each part; the feed ends if it returns False.
        """
        async with aclosing(self._follow(name, after, is_leaving=is_leaving)) as parts:
            async for part in parts:
                if not await may_read():
                    return
                yield part

    async def _follow(self, name: str, after: int | None, *, is_leaving: bool) -> AsyncGenerator[bytes]:
        # A position beyond the end means that the log was restored from a backup. Works that are appended before that
        # position would not reach the agent, so list all works again.
        if after is None or after > self._end(name):
            # Sample the end before listing: changes made during the list are then repeated by the feed, not lost.
            after = self._end(name)
            async for page in self._list(name):
                yield page
            if is_leaving:
                # A leaving cluster must report every work as removed, also works that the agent has forgotten; so
                # replay the partition from its beginning.
                after = 0
            yield _line(messages.Line(position=after, is_listed=True))
        async for part in self._feed(name, after):
            yield part

    async def newest_removal(self, name: str, key: str) -> messages.Work | None:
        """Return the newest record, as a message, that removed a binding's work from a cluster; None if none did."""
        before = queries.NUMBER_MAX
        while numbers := await self._reads.read(
            lambda rows, before=before: agent_queries.newest_works(rows, key, before)
        ):
            for number in numbers:
                batch = await self._reads.log.read_all(number - 1, 1)
                if works := await self._valid_works(name, batch):
                    return works[0][1]
            before = numbers[-1]
        return None

    async def _list(self, name: str) -> AsyncGenerator[bytes]:
        """Yield a line for each current work, in pages; the feed that follows repeats changes made meanwhile."""
        after = 0
        while True:
            page = await self._reads.read(lambda rows, after=after: agent_queries.works_of(rows, name, after))
            works = [of_current(placed.key, placed.work) for placed in page]
            yield b"".join(_line(messages.Line(work=work)) for work in works)
            if len(page) < agent_queries.PAGE:
                return
            after = page[-1].id

    async def _feed(self, name: str, after: int) -> AsyncGenerator[bytes]:
        """Yield a line for each new version of a work and each change of namespaces.

        After ``_QUIET_SECONDS`` without a line, yield a line with only the position.
        """
        partition = keys.shard_of(name)
        sent_s = anyio.current_time()
        namespaces: int | None = None
        while True:
            seen = self._reads.views.folded
            if (last := await self._namespace_changes.last()) != namespaces:
                namespaces, sent_s = last, anyio.current_time()
                yield _line(messages.Line(position=after, namespaces=namespaces))
            while after < self._end(name):
                batch = await self._reads.log.read(topics.WORKS, partition, after, _BATCH_RECORDS)
                if not batch:
                    break
                if works := await self._valid_works(name, batch):
                    sent_s = anyio.current_time()
                    yield b"".join(_line(messages.Line(position=end, work=work)) for end, work in works)
                after = batch[-1].offset + 1
            # Records of other clusters wake this loop too, so check the elapsed time.
            if anyio.current_time() >= sent_s + _QUIET_SECONDS:
                sent_s = anyio.current_time()
                yield _line(messages.Line(position=after))
            with anyio.move_on_after(sent_s + _QUIET_SECONDS - anyio.current_time()):
                if not await self._reads.is_more(seen):
                    return

    async def _valid_works(
        self, name: str, batch: Sequence[records.StoredRecord]
    ) -> list[tuple[int, messages.Work]]:
        """Return the valid works of a cluster among these records, each with the offset of the next record.

        Works recorded by a fenced owner are left out because they have no effect. Works that a later record removed
        are left out too.
        """
        works = [
            (record.offset + 1, work)
            for record in batch
            if record.key == name and (work := of_record(record)) is not None
        ]
        if not works:
            return []
        work_keys = {work.key for _, work in works}
        current = await self._reads.read(
            lambda rows: {key: agent_queries.placed(rows, name, key) for key in work_keys}
        )
        foreign = await self._reads.read(
            lambda rows: foreign_works(rows, batch[0].partition, batch[0].offset, batch[-1].offset)
        )
        return [
            (position, work)
            for position, work in works
            if position - 1 not in foreign and _is_current(work, current[work.key])
        ]

    def _end(self, name: str) -> int:
        return self._reads.log.ends().get((topics.WORKS, keys.shard_of(name)), 0)


def _is_current(work: messages.Work, current: agent_queries.Placed | None) -> bool:
    """Whether the projection has this version of a work or a later one.

    ``current`` is the work in the projection, None if it was removed.
    """
    if current is None:
        return work.state == "removed"
    return current.version >= work.version


def _line(line: messages.Line) -> bytes:
    return canonical_json(line) + b"\n"


def of_record(record: StoredRecord) -> messages.Work | None:
    """Return the message about the work in a record of ``works``; None if the record has no work."""
    data = codec.event_of(record)
    return None if data is None else _of_event(data)


def of_current(key: str, work: Work) -> messages.Work:
    """Convert a binding's work of the projection to the message for its agent."""
    return _message(key, work.name, work, is_suspended=work.suspended)


def _of_event(data: shapes.Event) -> messages.Work | None:
    match data:
        case works.WorkApplied():
            name = marks.work_name(data.template.kind, data.template.namespace, data.template.name)
            return _message(data.key, name, data, is_suspended=False)
        case works.WorkRemoved():
            return messages.Work(
                key=data.key, state="removed", term=data.term, step=data.step, preserved=data.preserved
            )
        case works.WorkSuspended():
            return messages.Work(key=data.key, state="suspended", term=data.term, step=data.step)
        case _:
            return None


def _message(key: str, name: str, work: Work | works.WorkApplied, *, is_suspended: bool) -> messages.Work:
    return messages.Work(
        key=key,
        state="suspended" if is_suspended else "applied",
        term=work.term,
        step=work.step,
        name=name,
        template=work.template,
        digest=work.digest,
        replicas=work.replicas,
        overrides=_digest(work),
        reading=work.reading,
    )


def _digest(work: Work | works.WorkApplied) -> str:
    """Return a digest of a work's ``overrides``, ``labels``, ``completions`` and ``reading``; empty if all are unset.

    Works of the same template with the same replicas differ only in these fields.
    """
    if work.completions is not None:
        differs = canonical_json((work.overrides, work.labels, work.reading, work.completions))
    elif work.labels or work.reading:
        differs = canonical_json((work.overrides, work.labels, work.reading))
    else:
        differs = canonical_json(work.overrides) if work.overrides else b""
    return hashlib.blake2b(differs, digest_size=8).hexdigest() if differs else ""


def manifest_message(rendered: Rendered, mark_values: marks.MarkValues) -> messages.Manifest:
    """Return the message with a rendered manifest, to which the labels and annotations of ``mark_values`` are added.

    If rendering failed, the message has the ``fault`` and an empty manifest.
    """
    if rendered.fault:
        return messages.Manifest(manifest=msgspec.Raw(rendered.manifest), fault=rendered.fault)
    value = KubeObject.from_json(rendered.manifest)
    return messages.Manifest(
        manifest=marks.propagated(value, mark_values).raw,
        conflict_resolution="Overwrite" if mark_values.overwrites else "Abort",
    )
