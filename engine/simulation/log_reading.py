"""Read the log of members: the works that they apply, and all records that restore them.

Any producer may append to the topic ``works``: members apply only works that a valid step declares as its output. A
step is valid if its number, digest and term continue the chain of its shard's valid steps (``events.chain``).

``member_history`` folds the records that restore a member; this module reads them in batches and lets other tasks run
in between.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from sys import intern
from typing import Final, NamedTuple

from msgspec import structs

from engine.log import port, reading
from engine.shared_values import shared, shared_ref
from engine.simulation import member_history, recovery, specs, state
from engine.simulation.state import MemberState, ReportCause
from engine.works import manifests, template_loading
from engine.works.templates import Template
from events import (
    attributes,
    catalogue,
    clusters,
    codec,
    health,
    ids,
    keys,
    kube_objects,
    records,
    times,
    topics,
    works,
)
from events.chain import Chain
from events.outputs import Judgement, Outputs
from events.records import StoredRecord
from events.validation import event_fields

READ: Final = 500
"""Number of records to read and fold before other tasks run."""

_AWAITED_MAX = 100_000
"""Maximum number of works that steps have declared and whose records have not been read; the oldest are dropped.

Steps declare works of all clusters. Records are read only from the partitions of simulated clusters.
"""
_NONE: Final[Mapping[int, Chain]] = {}
_NO_ENDS: Final[port.Ends] = {}


class ValidWorks:
    """Follows the steps of all shards and judges each record of ``works`` once, in partition order.

    ``chains`` are the chains of valid steps by shard, up to the offsets ``ends``; only later steps are read from the
    log. All steps are read for a shard that has no chain.
    """

    def __init__(
        self, log: port.Log, chains: Mapping[int, Chain] = _NONE, ends: port.Ends = _NO_ENDS
    ) -> None:
        self._log = log
        self._chains = {shard: chains.get(shard) or Chain(shard) for shard in range(topics.SHARDS)}
        self._outputs = Outputs((topics.WORKS,), self._chains)
        self._ends = {
            shard: ends.get((topics.DECISIONS, shard), 0) if shard in chains else 0 for shard in self._chains
        }
        self._foreign: set[tuple[int, int]] = set()

    async def follow(self, ends: port.Ends) -> list[records.StoredRecord]:
        """Read the steps up to these ends; return the works kept by ``judge`` that these steps declare, if valid."""
        works_due: list[records.StoredRecord] = []
        for shard, chain in self._chains.items():
            end = ends.get((topics.DECISIONS, shard), 0)
            while self._ends[shard] < end:
                start = self._ends[shard]
                batch = await self._log.read(topics.DECISIONS, shard, start, min(READ, end - start))
                for record in batch:
                    if record.headers.get("ce_type") == catalogue.STEP_TAKEN and self._take(chain, record):
                        works_due += self._take_early_works(shard)
                self._ends[shard] = port.offset_after(batch, end)
                await asyncio.sleep(0)  # let other tasks run: after a restart this reads all steps
        while len(self._outputs.awaited) > _AWAITED_MAX:
            del self._outputs.awaited[next(iter(self._outputs.awaited))]
        return works_due

    def judge(self, record: records.StoredRecord) -> bool:
        """Judge the next record of its partition; return whether members apply it.

        A work whose step has not been read yet is kept for ``follow``.
        """
        judgement = self._outputs.judge(record)
        if judgement is not Judgement.VALID:
            self._foreign.add((record.partition, record.offset))
        if judgement is Judgement.EARLY:
            self._outputs.keep(record)
        return judgement is Judgement.VALID

    def is_valid(self, record: records.StoredRecord) -> bool:
        """Whether ``judge`` accepted this record."""
        return (record.partition, record.offset) not in self._foreign

    def _take(self, chain: Chain, record: records.StoredRecord) -> bool:
        data = codec.event_of(record)
        if data is None or not chain.take(record, data):
            return False
        self._outputs.expect(chain.shard)
        return True

    def _take_early_works(self, shard: int) -> list[records.StoredRecord]:
        valid_works = [
            record
            for record in self._outputs.take_early(shard)
            if self._outputs.judge(record) is Judgement.VALID
        ]
        self._foreign.difference_update((record.partition, record.offset) for record in valid_works)
        return valid_works


_WRITES: Final = catalogue.types_of(
    clusters.MemberObjectApplied, clusters.MemberObjectDeleted, clusters.MemberPodDeleted
)


class WorkContents(NamedTuple):
    """The content of works: templates by position in the log, and the renderings of works with overrides."""

    loaded: Mapping[template_loading.TemplatePosition, Template]
    rendered: Mapping[manifests.RenderInput, manifests.Rendered]

    def templates(self) -> Iterator[Template]:
        yield from self.loaded.values()
        yield from (rendered.template for rendered in self.rendered.values())

    def of(self, work: works.Work) -> tuple[works.Work, Template, str]:
        """Return a work with its overrides applied, its template, and why the overrides can't be applied (or empty)."""
        if not isinstance(work, works.WorkApplied):
            return work, template_loading.EMPTY, ""
        if work.overrides:
            result = self.rendered[manifests.input_of(work)]
            return structs.replace(work, replicas=result.replicas), result.template, result.fault
        return work, self.loaded.get((work.shard, work.offset), template_loading.EMPTY), ""


class Contents(NamedTuple):
    """Reads the templates of works from the log, and renders works with overrides."""

    loader: template_loading.TemplateLoader
    renderer: manifests.Renderer

    async def read(
        self, batch: Sequence[works.Work], running: Mapping[template_loading.TemplatePosition, Template]
    ) -> WorkContents:
        """Return the content of works; templates in ``running`` are not read from the log."""
        applied = [work for work in batch if isinstance(work, works.WorkApplied)]
        rendered = await self.renderer.render_all(
            manifests.input_of(work) for work in applied if work.overrides
        )
        positions = {(work.shard, work.offset) for work in applied if template_loading.needs_template(work)}
        loaded = await self.loader.load(positions - running.keys())
        return WorkContents({**running, **loaded}, rendered)


async def rebuild(
    log: port.Log,
    contents: Contents,
    members: Sequence[specs.MemberSpec],
    ends: port.Ends,
    valid_works: ValidWorks,
    clock_ms: Callable[[], int],
    known: Mapping[str, member_history.History],
) -> tuple[dict[str, MemberState], dict[str, int], frozenset[str]]:
    """Return the states of the members as of ``ends``.

    Also return, for each member that is down, the offset of its first work not applied, and the names of the members
    that have never joined. Members with a history in ``known`` start from it; only the others are read from the log.
    """
    read = {
        spec.name: member_history.History(nodes=spec.node_count) for spec in members if spec.name not in known
    }
    behind = await _read(log, read, ends, valid_works) if read else {}
    histories = {**known, **read}
    for name, history in histories.items():
        if history.down_since:
            behind.setdefault(name, ends.get((topics.WORKS, keys.shard_of(name)), 0))
    overridden: dict[str, dict[str, Template]] = {}
    for name, history in histories.items():
        member_history.take_writes(history, sys.maxsize)
        overridden[name] = await _settle_overridden(contents.renderer, history)
    # Load the templates of all members at once, since members share most of them.
    loaded = await contents.loader.load(
        {position for history in histories.values() for _, position in member_history.positions(history)}
    )
    states: dict[str, MemberState] = {}
    for spec in members:
        history = histories[spec.name]
        templates = {key: loaded[position] for key, position in member_history.positions(history)}
        member = states[spec.name] = state.initial_state(spec)
        recovery.restore(member, history, templates | overridden[spec.name], clock_ms())
        await asyncio.sleep(0)
    unseen = frozenset(name for name, history in histories.items() if not history.was_joined)
    return states, behind, unseen


def work_in(
    record: StoredRecord, share: Callable[[str], str] = shared
) -> tuple[works.Work, records.Envelope] | None:
    """Return the work in a record of ``works`` and its envelope; None if it is not a work.

    ``share`` returns the same string object for equal texts, which saves memory. The default remembers recent texts
    only, which suffices if the works of one binding for all its clusters are read shortly after each other.
    """
    decoded = codec.decode(record)
    match decoded:
        case codec.Decoded(data=works.WorkApplied() as work):
            return _with_shared_texts(work, share), decoded.envelope
        case codec.Decoded(data=works.WorkRemoved() | works.WorkSuspended() as work):
            return work, decoded.envelope
        case _:
            return None


def _with_shared_texts(work: works.WorkApplied, share: Callable[[str], str]) -> works.WorkApplied:
    """Return the work with shared strings, since the works of its binding in other members have equal texts."""
    ref = structs.replace(work.template, name=share(work.template.name))
    return structs.replace(work, key=share(work.key), digest=share(work.digest), template=shared_ref(ref))


def write_in(record: StoredRecord, decoded: codec.Decoded) -> member_history.ObjectWrite | None:
    """Return the write of a member's client in a record of ``clusters``; None for other events and for invalid ones."""
    data = decoded.data
    if not isinstance(data, clusters.MemberWrite):
        return None
    try:
        event_fields.check_cluster_event(data)
    except kube_objects.Refusal:
        return None  # the shard that reads the record rejects it
    head = decoded.envelope
    return member_history.ObjectWrite(
        record.number, data, ids.object_uid(head.source, head.id, record.key), _time_of(head)
    )


def undecoded_write_in(record: StoredRecord) -> member_history.ObjectWrite | None:
    """Return the write of a member's client, as ``write_in`` does; records of other event types are not decoded."""
    if attributes.get(record, "type") not in _WRITES:
        return None
    decoded = codec.decode(record)
    return write_in(record, decoded) if isinstance(decoded, codec.Decoded) else None


def cause_of(
    record: StoredRecord, head: records.Envelope, share: Callable[[str], str] = shared
) -> ReportCause:
    """Return the cause of a report, from the work's record and envelope."""
    return ReportCause(record.partition, record.offset, share(head.correlationid), head.trace)


async def _read(
    log: port.Log, histories: Mapping[str, member_history.History], ends: port.Ends, valid_works: ValidWorks
) -> dict[str, int]:
    """Fold the records of members; return for each that is down the offset of its first work not applied."""
    async for record in _records(log, (topics.CLUSTERS, 0), ends):
        history = histories.get(record.key)
        if history is not None and isinstance(decoded := codec.decode(record), codec.Decoded):
            member_history.take_cluster(history, decoded.data, record.number, decoded.envelope.source)
            if (write := write_in(record, decoded)) is not None:
                history.writes.append(write)
    behind = await _take_works(log, histories, ends, valid_works)
    for shard in range(topics.SHARDS):
        async for record in _records(log, (topics.HEALTH, shard), ends):
            take_report(histories, record)
    return behind


def _records(log: port.Log, slot: tuple[str, int], ends: port.Ends) -> AsyncIterator[StoredRecord]:
    return reading.of_partition(log, *slot, end=ends.get(slot, 0))


async def _take_works(
    log: port.Log, histories: Mapping[str, member_history.History], ends: port.Ends, valid_works: ValidWorks
) -> dict[str, int]:
    behind: dict[str, int] = {}
    await valid_works.follow(ends)
    for partition in sorted({keys.shard_of(name) for name in histories}):
        async for record in _records(log, (topics.WORKS, partition), ends):
            is_valid = valid_works.judge(record)
            history = histories.get(record.key)
            if not is_valid or history is None or (work_read := work_in(record, intern)) is None:
                continue
            if history.down_since and record.number > history.down_since:
                behind.setdefault(record.key, record.offset)
                continue
            work, head = work_read
            member_history.take_writes(history, record.number)
            member_history.take_work(history, work, _time_of(head), cause_of(record, head, intern))
    return behind


def take_report(histories: Mapping[str, member_history.History], record: StoredRecord) -> None:
    """Fold a record of ``health`` into the history of the member that reported it, if the member has a history."""
    report = codec.event_of(record)
    if isinstance(report, health.WorkloadReported | health.WorkloadGone) and report.cluster in histories:
        member_history.take_report(histories[report.cluster], report, record.number)


async def _settle_overridden(
    renderer: manifests.Renderer, history: member_history.History
) -> dict[str, Template]:
    """Decide which work runs for each workload whose newest work has overrides; return the rendered templates."""
    templates: dict[str, Template] = {}
    overridden = [
        (key, workload, workload.applied)
        for key, workload in history.workloads.items()
        if workload.applied is not None and workload.applied.overrides
    ]
    for index, (key, workload, newest) in enumerate(overridden):
        if index % READ == 0:
            # Render many works in one call, because most of them can be applied; the calls below then use the
            # renderer's cache.
            await renderer.render_all(
                manifests.input_of(work) for _, _, work in overridden[index : index + READ]
            )
        fault, running_work = "", None
        for work in (newest, *workload.earlier):
            if not work.overrides:
                running_work = work
                break
            rendered = await renderer.render(manifests.input_of(work))
            if not rendered.fault:
                running_work = structs.replace(work, replicas=rendered.replicas)
                templates[key] = rendered.template
                break
            fault = fault or rendered.fault
        member_history.choose_work(workload, newest, running_work, fault)
    return templates


def _time_of(head: records.Envelope) -> int:
    try:
        return times.from_text(head.time)
    except ValueError:
        return 0
