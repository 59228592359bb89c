"""Checker of failover, from the log alone, by an independent model.

- ``flap:`` no cluster is emptied and no workload evicted before the trouble has lasted as long as tolerated,
  counted from the step that first knew of it.
- ``pace:`` clusters are emptied one at a time, and none during a mass failure.
- ``budget:`` a gracefully evicted workload runs until a replacement is healthy with all replicas wanted by then, or
  the grace period ends; with suppressed deletion, until the deletion is allowed; a directly evicted one is removed
  in the same step.
- ``lost:`` no work is removed unless an eviction, a scheduling decision or a changed requirement took its cluster away.
- ``rest:`` nothing that was due is left undone, and each cluster has the taints that policies demand.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator

import msgspec

from events import cluster_decisions, codec, decisions, keys, specs, topics
from events.records import StoredRecord
from events.validation import verdicts
from tests.simulation import world
from tests.simulation.failover.bindings import (
    Tracked,
    Work,
    evicts,
    fold_decision,
    fold_report,
    grace_ms,
    is_last_copy,
    runs,
    tolerated_ms,
)
from tests.simulation.failover.fleet import ClusterState, Fleet, fleets, is_crowd, wrong_taints

_CONFIRM_MS = 30_000
_PACE_MS = 10_000
_MOVES = (
    decisions.BindingRequired,
    decisions.BindingWithdrawn,
    decisions.ScheduleDecided,
    decisions.ScheduleFailed,
)
"""Decisions after which a work may be removed without an eviction."""


class Shard(msgspec.Struct):
    step: decisions.StepTaken
    began_ms: int = 0
    """Time of the first step of the current term."""
    known: dict[str, tuple[int, int]] = {}
    """By cluster of this shard: offset of its current status, and the time of the step that first knew it."""
    bindings: dict[str, Tracked] = {}
    ended: set[tuple[str, str]] = set()
    """Evictions finished in this step, whose works may be removed in it."""
    begun: dict[tuple[str, str], str] = {}
    """Evictions started in this step, with their purge mode."""
    recovered: set[tuple[str, str]] = set()
    """Evictions that ended in this step because their clusters have recovered."""
    moved: set[str] = set()
    """Bindings whose assignment, requirements or existence this step changed."""


def check(
    played: world.World, records: Iterable[StoredRecord], taken: Iterable[verdicts.Taken]
) -> Iterator[str]:
    """Yield all violations, each with the position of the record that shows it."""
    model = _Model(list(taken))
    for record in records:
        if record.topic == topics.DECISIONS:
            decoded = codec.decode(record)
            assert isinstance(decoded, codec.Decoded)
            for wrong in model.take(record.partition, decoded.data):
                yield f"{wrong} ({record.position})"
    yield from model.pace()
    yield from model.rest(played.rested_ms)
    yield from wrong_taints(model.fleet, taken)


class _Model:
    def __init__(self, taken: list[verdicts.Taken]) -> None:
        self._shards: dict[int, Shard] = {}
        self._fleets = list(fleets(taken))
        self._offsets = [offset for offset, _ in self._fleets]
        self._reports: dict[int, list[verdicts.Taken]] = {}
        self._allowances: dict[int, list[verdicts.Taken]] = {}
        self._emptied: list[tuple[int, str]] = []
        for verdict in taken:
            if verdict.record.topic == topics.HEALTH:
                self._reports.setdefault(verdict.record.partition, []).append(verdict)
            elif isinstance(verdict.data, specs.DeletionAllowed):
                self._allowances.setdefault(verdict.record.partition, []).append(verdict)

    @property
    def fleet(self) -> Fleet:
        """The clusters at the end of the log."""
        return self._fleets[-1][1] if self._fleets else {}

    def take(self, shard: int, data: object) -> Iterator[str]:
        """Fold the next decision of a shard and yield its violations."""
        if isinstance(data, decisions.StepTaken):
            yield from self._close(shard)
            self._open(shard, data)
            return
        now = self._shards[shard]
        match data:
            case cluster_decisions.ClusterJudged():
                yield from self._judge(now, data)
            case cluster_decisions.ClusterSilenced(name=name):
                heard_ms = self._fleet(now.step)[name].heard_ms
                silent_ms = now.step.time_ms - max(heard_ms, now.began_ms)
                if silent_ms < data.grace_seconds * 1_000:
                    yield f"flap: {name} counts as silent after {silent_ms} ms"
            case decisions.EvictionStarted(key=key):
                yield from self._begin(now, now.bindings[key], data)
            case decisions.EvictionFinished(key=key, cluster=name):
                yield from self._end(now, now.bindings[key], data)
            case decisions.BindingDispatched(key=key, works=works):
                yield from self._apply_works(now, key, works)
            case _:
                if isinstance(data, _MOVES):
                    now.moved.add(data.key)
                fold_decision(now.bindings, data)

    def pace(self) -> Iterator[str]:
        """Clusters are emptied with a pause between them."""
        ordered = sorted(self._emptied)
        for (before_ms, before), (after_ms, after) in itertools.pairwise(ordered):
            if before != after and after_ms - before_ms < _PACE_MS:
                yield f"pace: {after} is emptied {after_ms - before_ms} ms after {before}"

    def rest(self, rested_ms: int) -> Iterator[str]:
        """Yield what is overdue at the end of the run."""
        for shard in self._shards.values():
            yield from self._close(shard.step.shard)
            for key, binding in shard.bindings.items():
                for name in binding.allowed:
                    yield f"rest: {key} still leaves {name}, where it may be deleted"
                for name, task in binding.tasks.items():
                    is_over = task.created_ms + grace_ms(task) < rested_ms
                    if not task.suppress_deletion and is_over and not is_last_copy(binding, task):
                        yield f"rest: {key} still leaves {name}"
                for name in binding.clusters if binding.failover else ():
                    report = binding.reports.get(name)
                    if (
                        report
                        and report.unhealthy_ms
                        and report.unhealthy_ms + tolerated_ms(binding) < rested_ms
                    ):
                        yield f"rest: {key} is unhealthy in {name} for too long"

    def _open(self, shard: int, step: decisions.StepTaken) -> None:
        former = self._shards.get(shard)
        now = self._shards[shard] = Shard(
            step,
            former.began_ms if former and former.step.term == step.term else step.time_ms,
            former.known if former else {},
            former.bindings if former else {},
        )
        for name, seen in self._fleet(step).items():
            if keys.shard_of(name) == shard and now.known.get(name, (-1, 0))[0] != seen.since:
                now.known[name] = (seen.since, step.time_ms)
        start = former.step.ends[topics.SPECS] if former else 0
        for verdict in self._allowances.get(shard, []):
            binding = now.bindings.get(verdict.record.key)
            if (
                binding is not None
                and isinstance(verdict.data, specs.DeletionAllowed)
                and start <= verdict.record.offset < step.ends[topics.SPECS]
            ):
                binding.allowed |= {verdict.data.cluster} & {
                    name for name, task in binding.tasks.items() if not task.held
                }
        start = former.step.ends[topics.HEALTH] if former else 0
        for verdict in self._reports.get(shard, []):
            if start <= verdict.record.offset < step.ends[topics.HEALTH]:
                fold_report(now.bindings, verdict.data)

    def _close(self, shard: int) -> Iterator[str]:
        now = self._shards.get(shard)
        if now is None:
            return
        for (key, name), mode in now.begun.items():
            binding = now.bindings.get(key)
            # A reschedule request in the same step may place it there again.
            if mode != "Directly" or binding is None or name in binding.clusters:
                continue
            if name in binding.works and not any(
                name in required_clusters for required_clusters in binding.required.values()
            ):
                yield f"budget: {key} leaves {name} directly, which is told nothing of it"
        now.begun, now.ended, now.recovered, now.moved = {}, set(), set(), set()
        for binding in now.bindings.values():
            for report in binding.reports.values():
                if not report.healthy and not report.unhealthy_ms:
                    report.unhealthy_ms = now.step.time_ms

    def _fleet(self, step: decisions.StepTaken) -> Fleet:
        index = bisect.bisect_left(self._offsets, step.ends[topics.CLUSTERS])
        return self._fleets[index - 1][1] if index else {}

    def _judge(self, now: Shard, judged: cluster_decisions.ClusterJudged) -> Iterator[str]:
        fleet = self._fleet(now.step)
        seen = fleet[judged.name]
        if not any(taint.effect == "NoExecute" for taint in judged.added):
            return
        if judged.status != seen.status:
            yield f"flap: {judged.name} counts as {judged.status}, it is {seen.status}"
        lasted_ms = now.step.time_ms - now.known[judged.name][1]
        # Conditions that clients report count at once.
        if not seen.conditions and seen.status != "Unknown" and lasted_ms < _CONFIRM_MS:
            yield f"flap: {judged.name} is tainted after {lasted_ms} ms of {seen.status}"
        if seen.status not in ("", "True"):
            self._emptied.append((now.step.time_ms, judged.name))
            if is_crowd(fleet):
                yield f"pace: {judged.name} is emptied, with most of {len(fleet)} in trouble"

    def _begin(self, now: Shard, binding: Tracked, begun: decisions.EvictionStarted) -> Iterator[str]:
        time_ms = now.step.time_ms
        name, key = begun.cluster, begun.key
        if begun.reason == "ApplicationFailure":
            report = binding.reports.get(name)
            if report is None or not report.unhealthy_ms:
                yield f"flap: {key} leaves {name}, which does not say that it is unhealthy"
            elif time_ms < report.unhealthy_ms + tolerated_ms(binding):
                yield f"flap: {key} leaves {name} after {time_ms - report.unhealthy_ms} ms"
        elif begun.reason == "ClusterTerminating":
            if not self._fleet(now.step).get(name, ClusterState()).is_leaving:
                yield f"flap: {key} leaves {name}, which is not leaving"
        elif begun.reason != "Preempted":
            seen = self._fleet(now.step).get(name, ClusterState())
            if not any(evicts(binding.applied, *taint, time_ms) for taint in seen.taints.items()):
                yield f"flap: {key} leaves {name}, whose taints {seen.taints} it tolerates"
        if name not in binding.clusters or (name in binding.tasks and not binding.is_imported):
            yield f"budget: {key} leaves {name}, where it is not placed"
        now.begun[key, name] = begun.purge_mode
        binding.clusters.pop(name, None)
        binding.tasks.setdefault(name, begun)

    def _end(self, now: Shard, binding: Tracked, ended: decisions.EvictionFinished) -> Iterator[str]:
        key, name = ended.key, ended.cluster
        task = binding.tasks.pop(name, None)
        if ended.reason == "ClusterLeft":
            if name in self._fleet(now.step):
                yield f"budget: {key} has left {name}, which has not left"
        elif ended.reason == "DeletionAllowed":
            if name not in binding.allowed:
                yield f"budget: {key} has left {name}, which nobody allowed: {task}"
        elif task is None or task.suppress_deletion:
            yield f"budget: {key} has left {name}, which nobody may end: {task}"
        elif ended.reason == "GracePeriodOver":
            yield from _end_by_time(now, binding, task)
        elif ended.reason == "Recovered":
            now.recovered.add((key, name))
            yield from _recover(self._fleet(now.step).get(name, ClusterState()), now, binding, task)
        elif not task.held:
            yield from _is_replaced(binding, ended)
        binding.allowed.discard(name)
        now.ended.add((key, name))
        report = binding.reports.get(name)
        if report is not None:
            report.unhealthy_ms = 0

    def _apply_works(self, now: Shard, key: str, works: Iterable[decisions.DispatchedWork]) -> Iterator[str]:
        binding = now.bindings[key]
        version = (now.step.term, now.step.number)
        for work in works:
            name = work.cluster
            if work.state != "removed":
                known = binding.works.get(name)
                first = known.first if known else version
                binding.works[name] = Work(version, first, bool(work.overrides))
                continue
            task = binding.tasks.get(name)
            is_leaving = self._fleet(now.step).get(name, ClusterState(is_leaving=True)).is_leaving
            if task is not None and task.purge_mode != "Directly" and not is_leaving:
                yield f"budget: {key} is withdrawn from {name}, which it leaves {task.purge_mode}"
            is_moved = is_leaving or key in now.moved or (key, name) in now.ended | now.begun.keys()
            # A workload with zero replicas is divided over no cluster.
            if (key, name) in now.recovered and not binding.clusters and not binding.scheduled:
                yield f"lost: {key} is withdrawn from {name}, which has just recovered, and runs nowhere"
            if not is_moved:
                yield f"lost: {key} is withdrawn from {name}, although nothing moved it"
            binding.works.pop(name, None)
            binding.reports.pop(name, None)


def _end_by_time(now: Shard, binding: Tracked, task: decisions.EvictionStarted) -> Iterator[str]:
    where = f"budget: {task.key} has left {task.cluster}"
    lasted_ms = now.step.time_ms - task.created_ms
    if lasted_ms <= grace_ms(task):
        yield f"{where} after {lasted_ms} of {grace_ms(task)} ms of grace"
    if is_last_copy(binding, task):
        yield f"{where}, where its last copy runs"


def _recover(
    seen: ClusterState, now: Shard, binding: Tracked, task: decisions.EvictionStarted
) -> Iterator[str]:
    """An eviction is undone only if its taints are tolerated, it runs there, and has no other assignment."""
    where = f"budget: {task.key} comes back to {task.cluster}"
    # The placement of the claim, which the return to the cluster applies.
    if any(evicts(binding.placement, *taint, now.step.time_ms) for taint in seen.taints.items()):
        yield f"{where}, whose taints {seen.taints} it does not tolerate"
    # Earlier evictions of the same step may have been undone.
    others = binding.clusters.keys() - {name for key, name in now.ended if key == task.key}
    if others or not runs(binding, task.cluster):
        yield f"{where}, placed in {others}"


def _is_replaced(binding: Tracked, ended: decisions.EvictionFinished) -> Iterator[str]:
    """The replacement is healthy in all clusters, on the newest works, with all replicas now wanted."""
    where = f"budget: {ended.key} has left {ended.cluster} for good"
    if not binding.scheduled:
        yield f"{where}, while there is no place for it"
    if not binding.clusters and binding.replicas:
        yield f"{where}, and runs nowhere"
    ready = 0
    for name in binding.clusters:
        report, work = binding.reports.get(name), binding.works.get(name)
        if (
            report is None
            or work is None
            or report.version < work.version
            or not report.healthy
            or report.fault
        ):
            yield f"{where}, while {name} says {report} of {work}"
            continue
        is_enough = work.is_overridden or binding.is_job
        ready_replicas = binding.clusters[name] if is_enough else report.ready
        ready += ready_replicas
        replicas = binding.clusters[name] if binding.is_shared else binding.replicas
        if ready_replicas < replicas:
            yield f"{where}, with {ready_replicas} of {replicas} replicas ready in {name}"
    if binding.divided and not binding.is_imported and ready < binding.replicas:
        yield f"{where}, with {ready} of {binding.replicas} replicas ready"
