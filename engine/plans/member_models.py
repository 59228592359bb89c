"""Models of the members of a fork: the simulated members as configured, and the others as they last reported.

A cluster that an agent serves becomes as many simulated nodes as it reported; the first one has the whole capacity.
Workloads there that are not of this control plane become one fixed load, so that the model reports the cluster's free
capacity. The workloads of this control plane are derived from the state of the shards, so the cost does not grow with
the history.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from engine.deciders import dispatch
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import Declared, Dispatched, ShardState
from engine.deciders.state import Report as ReportState
from engine.domain.clusters import READY, UNKNOWN, Cluster, Health
from engine.kubeapi.values import quantity
from engine.log import port, reading
from engine.reconcilers import snapshots
from engine.simulation import log_reading as simulated_reading
from engine.simulation import member_fleet, member_history, specs
from engine.works import templates
from events import clusters, codec, health, records, times, topics

_ASSUMED: Final = (
    "{} not simulated; the plan assumes that replicas start there in {} ms, within the last reported capacity, "
    "and that no Job ends"
)
_SOURCE: Final = "/reballast/plans"
_RESTORED_LATER: Final = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")})
"""Kinds whose workloads, if they run as their works demand, are restored only when their next work arrives.

Workloads of other kinds are few or cheap, so they are restored at once.
"""


class Models(Struct, frozen=True, kw_only=True):
    """The members of a fork; ``reported`` holds the last report on the capacity of those that are not simulated."""

    specs: tuple[specs.MemberSpec, ...]
    reported: dict[str, clusters.CapacityReported] = {}
    assumptions: tuple[str, ...] = ()


class _RunningWorkload(Struct, frozen=True, gc=False):
    """A workload in a cluster, as in the state of its shard at ``at_ms``."""

    declared: Declared
    work: Dispatched
    report: ReportState | None
    shard: int
    at_ms: int

    def history(self, cluster: str, key: str) -> member_history.WorkloadHistory:
        declared, work, report = self.declared, self.work, self.report
        # While a work is suspended the previous work keeps running; the last report has its version.
        version = (report.term, report.step) if work.suspended and report else (work.term, work.step)
        applied = structs.replace(
            dispatch.applied(key, cluster, declared, work, self.shard, version), digest=work.digest
        )
        if report is not None and declared.ref.kind in templates.COUNTED_BY_MEMBERS:
            # A node selector may keep a DaemonSet from some nodes.
            applied = structs.replace(applied, replicas=report.replicas)
        past = member_history.WorkloadHistory(
            (work.term, work.step),
            # A work that was suspended from the beginning has never come to the cluster.
            applied=None if work.suspended and not work.generation else applied,
            created_ms=self.at_ms,
            suspended=work.suspended,
        )
        if report is not None and report.fault and work.first < (work.term, work.step):
            # The newest work could not be applied, so an earlier one runs; only the report has its replicas.
            past.earlier = [structs.replace(applied, overrides=(), replicas=report.replicas)]
        return past

    def reported(self, cluster: str, key: str) -> health.WorkloadReported | None:
        return None if self.report is None else _report(key, cluster, self.report)

    def can_be_restored_later(self) -> bool:
        """Whether the workload has the replicas of its work, and a new report on it would equal the last one."""
        work, ref, report = self.work, self.declared.ref, self.report
        if report is None or (ref.api_version, ref.kind) not in _RESTORED_LATER:
            return False
        return (
            not (work.suspended or work.overrides or work.reading or report.fault or report.values)
            and report.healthy
            and (report.term, report.step) == (work.term, work.step)
            and (report.generation, report.status) == (max(report.observed_generation, 1), "")
            and {report.replicas, report.updated, report.ready, report.available} == {work.replicas}
        )


def read(facts: Facts, simulated: Sequence[specs.MemberSpec]) -> Models:
    """Return models of all clusters: ``simulated`` as they are, the others as the facts describe them."""
    names = {spec.name for spec in simulated}
    others = {name: facts.members[name] for name in sorted(facts.members.keys() - names)}
    models = [_model(name, cluster) for name, cluster in others.items()]
    return Models(
        specs=(*simulated, *models),
        reported={name: cluster.capacity for name, cluster in others.items() if cluster.capacity is not None},
        assumptions=_assumptions([spec.name for spec in models]),
    )


async def past(
    models: Models, facts: Facts, folds: Sequence[ShardFold], log: port.Log
) -> member_history.Past:
    """Return the workloads of the modelled clusters, from the state of the shards and reports not folded yet."""
    histories = {spec.name: _history(spec, models, facts) for spec in models.specs if spec.modelled}
    for fold in folds:
        end = fold.ends[topics.HEALTH]
        async for record in reading.of_partition(log, topics.HEALTH, fold.state.shard, end):
            simulated_reading.take_report(histories, record)
        _take_works(histories, fold.state)
    return member_history.Past(
        histories=histories, chains={fold.state.shard: snapshots.chain_of(fold.state) for fold in folds}
    )


def heartbeats(models: Models, facts: Facts) -> dict[str, Health]:
    """Return the last reported health of the modelled clusters whose agents send heartbeats, by name."""
    healths = ((spec.name, facts.members[spec.name].health) for spec in models.specs if spec.has_agent)
    return {name: known for name, known in healths if known is not None}


def heartbeat(name: str, known: Health, now_ms: int, grace_seconds: int = 0) -> records.Record:
    """Return another heartbeat of a cluster's agent; without a grace period, no report has to follow it.

    ``now_ms`` is its time in milliseconds since 1970.
    """
    data = clusters.ClusterHealthChanged(
        name=name,
        ready=known.status == READY,
        reason=known.reason,
        message=known.message,
        grace_seconds=grace_seconds,
    )
    at_ms = max(now_ms, known.heard_ms)
    head = records.Envelope(
        id=f"{name}-{at_ms}-{grace_seconds}",
        source=_SOURCE,
        type="",
        subject=name,
        time=times.to_text(at_ms),
    )
    return codec.encode(data, head, partition=0, key=name)


def load(models: Models, members: member_fleet.Members) -> None:
    """Set the used resources of the models to those in the last reports of their clusters."""
    for name, report in models.reported.items():
        capacity = members.state_of(name).capacity
        capacity.running = quantity.totals([report.allocated])
        # ``allocating`` in a report includes pending replicas, which the models count separately: subtract them.
        capacity.starting = {
            resource: max(amount - capacity.pending.get(resource, 0), 0)
            for resource, amount in quantity.totals([report.allocating]).items()
        }


def _assumptions(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    text = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
    return (_ASSUMED.format(text, specs.STARTUP_MS),)


def _model(name: str, cluster: Cluster) -> specs.MemberSpec:
    spec, capacity, known = cluster.spec, cluster.capacity, cluster.health
    count = 1 if capacity is None else capacity.nodes or 1
    return specs.MemberSpec(
        name=name,
        # The number of nodes matters to DaemonSets. The division of capacity does not, since only totals are compared.
        nodes=(
            specs.NodeGroup(count=1, allocatable={} if capacity is None else capacity.allocatable),
            specs.NodeGroup(count=count - 1, allocatable={}),
        ),
        labels=spec.labels,
        provider=spec.provider,
        region=spec.region,
        zones=spec.zones,
        apis=spec.apis,
        modelled=True,
        # A silent agent sends no heartbeats.
        has_agent=known is not None and known.grace_seconds > 0 and known.status != UNKNOWN,
    )


def _take_works(histories: Mapping[str, member_history.History], shard: ShardState) -> None:
    """Add the works of a shard's bindings, and its removals that are not confirmed yet."""
    for key, binding in shard.bindings.items():
        for cluster, work in binding.works.items():
            history = histories.get(cluster)
            if history is not None and binding.declared is not None:
                report = binding.reports.get(cluster)
                _take(
                    history,
                    cluster,
                    key,
                    _RunningWorkload(binding.declared, work, report, shard.shard, shard.time_ms),
                )
    for cluster, removals in shard.removals.items():
        if (history := histories.get(cluster)) is not None:
            for key, removal in removals.items():
                history.workloads[key] = member_history.WorkloadHistory(removal.version, removed=True)


def _take(history: member_history.History, cluster: str, key: str, known: _RunningWorkload) -> None:
    """Add a workload to a cluster's history; keep a report that the history has already, since it is newer."""
    if history.capacity is not None and key not in history.reports and known.can_be_restored_later():
        history.unrestored[key] = known
        return
    history.workloads[key] = known.history(cluster, key)
    if key not in history.reports and (report := known.reported(cluster, key)) is not None:
        history.reports[key] = report


def _history(spec: specs.MemberSpec, models: Models, facts: Facts) -> member_history.History:
    cluster = facts.members.get(spec.name)
    known = None if cluster is None else cluster.health
    is_ready = None if known is None else known.status == READY
    return member_history.History(
        joined=True,
        was_joined=True,
        ready=is_ready,
        down_since=1 if is_ready is False else 0,
        capacity=models.reported.get(spec.name),
        apis=spec.apis,
    )


def _report(key: str, cluster: str, report: ReportState) -> health.WorkloadReported:
    return health.WorkloadReported(
        cluster=cluster,
        key=key,
        term=report.term,
        step=report.step,
        replicas=report.replicas,
        updated=report.updated,
        ready=report.ready,
        available=report.available,
        healthy=report.healthy,
        fault=report.fault,
        values=report.values,
        generation=report.generation,
        observed_generation=report.observed_generation,
    )
