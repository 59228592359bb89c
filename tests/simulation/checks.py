"""Checkers of the design's invariants, from the log alone and without code of the deciders.

Each returns its violations as text; an empty list means that the invariant holds.
"""

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from engine.proof import verification
from events import clusters, codec, decisions, rejections, topics
from events.keys import shard_of
from events.records import StoredRecord
from events.validation import manifests, verdicts
from tests.builders.log_records import all_records
from tests.simulation import (
    departures,
    dependencies,
    overrides,
    preemption,
    quotas,
    rebalancers,
    rebuilding,
    template_imports,
    unplaced,
    views,
    world,
)
from tests.simulation.failover import invariants
from tests.simulation.unscheduled import Unscheduled

INPUTS = (topics.SPECS, topics.POLICIES, topics.CLUSTERS, topics.HEALTH, topics.LINKS)


class Cluster(msgspec.Struct):
    labels: dict[str, str] = {}
    taints: dict[tuple[str, str], str] = {}
    kinds: set[tuple[str, str]] = set()
    is_leaving: bool = False


class BindingRecord(msgspec.Struct):
    """The recorded state of one binding."""

    replicas: int | None = None
    requests: dict[str, str] | None = None
    kind: tuple[str, str] = ("", "")
    placement: dict[str, Any] = {}
    clusters: dict[str, int] = {}
    evicting: set[str] = set()
    is_claimed: bool = False
    imported: template_imports.Import = msgspec.field(default_factory=template_imports.Import)
    miscount: str = ""
    """The violation by a recovered assignment with former replicas, unless another decision follows it."""


async def check(played: world.World) -> list[str]:
    """Check all invariants of a stable world."""
    log = played.log
    records = await all_records(log)
    judged = list(_judged(records))
    violations = _inputs_are_accounted_for(records, judged)
    violations += _decisions_keep_their_promises(records)
    violations += rebalancers.check(records)
    violations += await rebuilding.check(log, played.worker)
    violations += _members_run_what_was_decided(played)
    taken = [verdict for _, verdict in judged if isinstance(verdict, verdicts.Taken)]
    violations += overrides.check(played, taken)
    violations += dependencies.check(played)
    violations += invariants.check(played, records, taken)
    violations += preemption.check(records)
    violations += quotas.check(records)
    violations += departures.check(records, taken)
    violations += unplaced.check(played)
    violations += await views.check(played, taken)
    report = await verification.verify(log)
    violations += [f"3: {finding.where}: {finding.message}" for finding in report.findings]
    return violations


def _judged(records: list[StoredRecord]) -> Iterable[tuple[StoredRecord, verdicts.Verdict]]:
    """Yield the inputs, each with the verdict of its partition."""
    folds: dict[tuple[str, int], verdicts.PartitionFold] = {}
    for record in records:
        if record.topic in INPUTS:
            slot = (record.topic, record.partition)
            if slot not in folds:
                folds[slot] = verdicts.PartitionFold(verdicts.PartitionState(*slot), manifests.check)
            yield record, folds[slot].take(record)


def _inputs_are_accounted_for(
    records: list[StoredRecord], judged: list[tuple[StoredRecord, verdicts.Verdict]]
) -> list[str]:
    """Invariant 1: each refused input is rejected exactly once, and nothing else is rejected."""
    refused = Counter(
        (record.topic, record.partition, record.offset)
        for record, verdict in judged
        if isinstance(verdict, verdicts.Refused)
    )
    rejected: Counter[tuple[str, int, int]] = Counter()
    for record in records:
        if record.topic == topics.REJECTIONS:
            decoded = codec.decode(record)
            assert isinstance(decoded, codec.Decoded)
            assert isinstance(decoded.data, rejections.InputRejected)
            rejected[(decoded.data.topic, decoded.data.partition, decoded.data.offset)] += 1
    return [
        f"1: rejected is {rejected[where]}, not {refused[where]}: {where}"
        for where in (refused | rejected)
        if refused[where] != rejected[where]
    ]


def _decisions_keep_their_promises(records: list[StoredRecord]) -> list[str]:
    """Invariants 4, 5 and 6: every decision is checked against the facts of its step."""
    facts = [record for record in records if record.topic == topics.CLUSTERS]
    history = _cluster_history(facts)
    imports = template_imports.annotations(records)
    bindings: dict[str, BindingRecord] = {}
    unscheduled = Unscheduled()
    ends: dict[int, int] = {}
    violations: list[str] = []
    for record in records:
        if record.topic != topics.DECISIONS:
            continue
        decoded = codec.decode(record)
        assert isinstance(decoded, codec.Decoded)
        match decoded.data:
            case decisions.StepTaken(shard=shard, ends=step_ends):
                ends[shard] = step_ends[topics.CLUSTERS]
            case decisions.ScheduleDecided() as decided:
                known = bindings[decided.key]
                fleet = history[ends[shard_of(decided.key)]]
                violations += [
                    f"{violation} ({record.position})" for violation in _judge(known, decided, fleet)
                ]
                known.clusters = {target.name: target.replicas for target in decided.clusters}
                known.imported.clusters = {}
                miscount = "".join(f"{text} ({record.position})" for text in _miscounts(known, decided))
                if decided.trigger == "Recovered":
                    known.miscount = miscount
                else:
                    known.miscount = ""
                    violations += [miscount] if miscount else []
            case data:
                _learn(bindings, data)
                unscheduled.take(data)
                if isinstance(data, decisions.BindingDeclared):
                    bindings[data.key].imported.declare(imports.get((record.partition, data.offset), ""))
    return violations + [
        known.miscount for key, known in bindings.items() if known.miscount and key not in unscheduled
    ]


def _learn(bindings: dict[str, BindingRecord], data: object) -> None:
    match data:
        case decisions.BindingDeclared(key=key, template=ref):
            known = bindings.setdefault(key, BindingRecord())
            known.replicas, known.requests, known.kind = (
                data.replicas,
                data.requests,
                (ref.api_version, ref.kind),
            )
        case decisions.BindingClaimed(key=key, placement=placement):
            bindings[key].placement = msgspec.json.decode(placement)
            bindings[key].is_claimed = True
        case decisions.BindingReleased(key=key) if key in bindings:  # otherwise the end of a mark
            bindings[key].is_claimed, bindings[key].miscount = False, ""
        case decisions.BindingWithdrawn(key=key):
            del bindings[key]
        case decisions.ScheduleFailed(key=key, emptied=is_emptied):
            bindings[key].miscount = ""
            if is_emptied:
                bindings[key].clusters = {}
        case decisions.EvictionStarted(key=key, cluster=name):
            bindings[key].clusters.pop(name, None)
            bindings[key].evicting.add(name)
        case decisions.EvictionFinished(key=key, cluster=name):
            bindings[key].evicting.discard(name)
        case _:
            pass


def _judge(
    known: BindingRecord, decided: decisions.ScheduleDecided, fleet: Mapping[str, Cluster]
) -> Iterable[str]:
    new = {target.name: target.replicas for target in decided.clusters}
    if not known.is_claimed:
        # It is not divided again: a recovered cluster gets its own replicas back.
        if decided.trigger != "Recovered":
            yield f"4: {decided.key}: {new} without a policy"
        return
    if decided.trigger == "Imported":
        return  # It is taken over as it was.
    for name in new.keys() - (known.imported.clusters or known.clusters).keys():
        reason = _forbidden(known, decided, fleet.get(name), name)
        if reason:
            yield f"5: {decided.key} newly on {name}, which {reason}"
    yield from _is_steady(known, decided, new, fleet)


def _miscounts(known: BindingRecord, decided: decisions.ScheduleDecided) -> Iterable[str]:
    """Invariant 4: yield that the decided replicas are not those of the template."""
    replicas = known.replicas or 0
    if not known.is_claimed or not replicas or decided.trigger == "Imported":
        return
    new = known.clusters
    if known.placement.get("replicaScheduling", {}).get("replicaSchedulingType") == "Divided":
        if sum(new.values()) != replicas:
            yield f"4: {decided.key}: {new} do not add up to {replicas}"
    elif not _overflows(known.placement) and any(count != replicas for count in new.values()):
        yield f"4: {decided.key}: {new} are not {replicas} everywhere"


def _overflows(placement: dict[str, Any]) -> bool:
    """Whether tiers of affinity groups divide the replicas, even Duplicated ones, as in Karmada."""
    return any("overflowAffinities" in group for group in placement.get("clusterAffinities", []))


def _is_steady(
    known: BindingRecord,
    decided: decisions.ScheduleDecided,
    new: dict[str, int],
    fleet: Mapping[str, Cluster],
) -> Iterable[str]:
    scheduling = known.placement.get("replicaScheduling", {})
    keeps = "dynamicWeight" in scheduling.get("weightPreference", {})
    keeps = keeps or scheduling.get("replicaDivisionPreference") == "Aggregated"
    if (
        decided.mode != "Steady"
        or not keeps
        or {"clusterAffinities", "spreadConstraints"} & known.placement.keys()
    ):
        return
    stays = {
        name: count
        for name, count in (known.imported.clusters or known.clusters).items()
        if _selected(known.placement, decided, fleet.get(name), name)
    }
    stays = {name: count for name, count in stays.items() if name not in known.evicting}
    before, after = sum(stays.values()), sum(new.values())
    for name, count in stays.items():
        if after >= before and new.get(name, 0) < count:
            yield f"6: {decided.key}: scaled up to {new}, which takes from {name} what it had in {stays}"
    for name, count in new.items():
        if after < before and count > stays.get(name, 0):
            yield f"6: {decided.key}: scaled down to {new}, which adds to {name} over {stays}"


def _forbidden(
    known: BindingRecord, decided: decisions.ScheduleDecided, cluster: Cluster | None, name: str
) -> str:
    if cluster is None:
        return "is no member"
    if cluster.is_leaving:
        return "is leaving"
    if name in known.evicting:
        return "it is being evicted from"
    if known.kind not in cluster.kinds:
        return f"does not serve {known.kind}"
    if not _selected(known.placement, decided, cluster, name):
        return "the placement does not select"
    tolerations = known.placement.get("clusterTolerations", [])
    for key, effect in cluster.taints:
        tolerated = any(toleration["key"] == key for toleration in tolerations)
        # A copy that never stopped is no new one: such a taint leaves it where it runs.
        is_kept = effect == "NoSchedule" and decided.trigger == "Recovered"
        if effect != "PreferNoSchedule" and not (tolerated or is_kept):
            return f"has the taint {key}:{effect}"
    return ""


def _selected(
    placement: dict[str, Any], decided: decisions.ScheduleDecided, cluster: Cluster | None, name: str
) -> bool:
    if cluster is None or cluster.is_leaving:
        return False
    affinity = placement.get("clusterAffinity", {})
    for group in placement.get("clusterAffinities", []):
        if group["affinityName"] == decided.affinity:
            affinity = group
    terms = [affinity, *affinity.get("overflowAffinities", [])]
    return any(_matches(term, cluster, name) for term in terms)


def _matches(affinity: dict[str, Any], cluster: Cluster, name: str) -> bool:
    if name in affinity.get("exclude", []) or name not in affinity.get("clusterNames", [name]):
        return False
    labels = affinity.get("labelSelector", {}).get("matchLabels", {})
    return all(fnmatch.fnmatchcase(cluster.labels.get(key, ""), value) for key, value in labels.items())


def _cluster_history(facts: list[StoredRecord]) -> list[dict[str, Cluster]]:
    """Return the clusters after each offset of ``clusters``."""
    fold = verdicts.PartitionFold(verdicts.PartitionState(topics.CLUSTERS, 0), manifests.check)
    now: dict[str, Cluster] = {}
    history = [now]
    for record in facts:
        verdict = fold.take(record)
        if isinstance(verdict, verdicts.Taken):
            now = _moved(now, verdict.data)
        history.append(now)
    return history


def _moved(fleet: dict[str, Cluster], data: object) -> dict[str, Cluster]:
    match data:
        case clusters.ClusterJoined(name=name, labels=labels, taints=taints, apis=apis):
            marks = {(taint.key, taint.effect): taint.value for taint in taints}
            kinds = {(api.group_version, kind) for api in apis for kind in api.kinds}
            is_leaving = name in fleet and fleet[name].is_leaving
            return fleet | {name: Cluster(labels, marks, kinds, is_leaving)}
        case clusters.ClusterLeaving(name=name):
            return fleet | {name: msgspec.structs.replace(fleet[name], is_leaving=True)}
        case clusters.ClusterLeft(name=name):
            return {other: cluster for other, cluster in fleet.items() if other != name}
        case clusters.ClusterLabelled(name=name, labels=labels):
            return fleet | {name: msgspec.structs.replace(fleet[name], labels=labels)}
        case clusters.ClusterTainted(name=name, taint=taint):
            marks = fleet[name].taints | {(taint.key, taint.effect): taint.value}
            return fleet | {name: msgspec.structs.replace(fleet[name], taints=marks)}
        case clusters.ClusterUntainted(name=name, key=key, effect=effect):
            marks = {
                mark: value
                for mark, value in fleet[name].taints.items()
                if mark[0] != key or effect not in ("", mark[1])
            }
            return fleet | {name: msgspec.structs.replace(fleet[name], taints=marks)}
        case _:
            return fleet


def _members_run_what_was_decided(played: world.World) -> list[str]:
    """At rest each member runs exactly what the bindings assign to it."""
    expected: dict[tuple[str, str], int] = {}
    held_back: set[tuple[str, str]] = set()
    for fold in played.worker.folds:
        for key, binding in fold.state.bindings.items():
            expected |= {(name, key): max(work.replicas, 0) for name, work in binding.works.items()}
            held_back |= {
                # The checker of overrides covers works with overrides.
                (name, key)
                for name, work in binding.works.items()
                if work.suspended or work.overrides
            }
    running = played.running()
    for where in held_back:
        expected.pop(where)
        running.pop(where, None)
    known = set(played.worker.facts.fleet.names())
    expected = {where: count for where, count in expected.items() if where[0] in known}
    running = {where: count for where, count in running.items() if where[0] in known}
    return [
        f"1: {name} runs {running.get((name, key))} of {key}, decided was {expected.get((name, key))}"
        for name, key in sorted(running.keys() | expected.keys())
        if running.get((name, key)) != expected.get((name, key))
    ]
