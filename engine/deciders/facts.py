"""Facts that every shard shares: clusters, policies, overrides and interpreters, folded from two partitions.

Folding a record returns its changes, with the old and the new value. A shard derives the keys to decide again from the
change and its own state alone, so replay queues the same keys.
"""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from engine.deciders import claims, interpretation, member_facts, quota_amounts, quota_assignments
from engine.deciders.fact_changes import (
    CapacityGrew,
    Change,
    Changed,
    ClusterChanged,
    ConditionsChanged,
    FactRefused,
    HealthReported,
    OverrideChanged,
    PolicyChanged,
    PriorityClassChanged,
    QuotaChanged,
    TaintPolicyChanged,
    changed,
)
from engine.deciders.member_facts import QuotaAmounts, QuotaLimits
from engine.deciders.state import Cause
from engine.domain import federated_quotas
from engine.domain.clusters import READY, Cluster, Health, joined, with_event
from engine.kubeapi.values.taints import Effect
from engine.objects import clusters as manifests
from engine.objects import policies as policy_objects
from engine.objects import priorities
from engine.objects import taint_policies as taint_objects
from engine.overrides import policies as override_objects
from engine.overrides import selection
from engine.placement import decision_cache, fleet
from events import clusters, ids, kube_objects, policies, shapes, topics
from events.records import StoredRecord
from events.shapes import PolicyRef
from events.validation import known_kinds, verdicts
from events.validation import manifests as validation_manifests


class KnownPolicy(Struct, frozen=True):
    """A policy; ``version`` is the write version of its last write."""

    policy: policy_objects.Policy
    version: int
    permanent_id: str


class FactsState(Struct):
    """Everything from which the facts can be rebuilt; stored in snapshots."""

    ends: dict[str, int]
    clusters: dict[str, Cluster]
    policies: list[KnownPolicy]
    interpreters: list[interpretation.Interpreter]
    inputs: list[verdicts.PartitionState]
    taint_policies: dict[str, taint_objects.TaintPolicy] = {}
    overrides: list[selection.KnownOverride] = []
    emptied: tuple[int, str] = (0, "")
    priority_classes: dict[str, priorities.PriorityClass] = {}
    quotas: dict[str, quota_assignments.Assignments] = {}
    limits: QuotaAmounts = {}
    overall: quota_amounts.Limits = {}


class Facts:
    """Fold of the fact topics, from a state or from the beginning; the fold takes ownership of the state.

    ``ends`` are the next offsets by topic. ``emptied`` is the time (ms since 1970; 0: none) and the name of the
    cluster that the engine last began to empty. ``quotas`` are the assignments of FederatedResourceQuotas, by the key
    of the ResourceQuota's binding; ``quota_limits`` are the quotas that clusters report, ``overall`` the overall limits
    of FederatedResourceQuotas. ``fleet`` has the fields of ``members`` that scheduling reads. ``leaving`` holds the
    leaving clusters, ``not_ready`` those whose last known health is not ready.
    """

    def __init__(self, state: FactsState | None = None) -> None:
        if state is None:
            inputs = [verdicts.PartitionState(topic, 0) for topic in topics.FACT_TOPICS]
            state = FactsState(dict.fromkeys(topics.FACT_TOPICS, 0), {}, [], [], inputs)
        self._state = state
        # These are the dictionaries of the state, so they are changed in place and never replaced.
        self.ends, self.members = state.ends, state.clusters
        self.taint_policies, self.priority_classes = state.taint_policies, state.priority_classes
        self.quotas, self.overall = state.quotas, state.overall
        self.quota_limits = QuotaLimits(state.limits)
        self.emptied = state.emptied
        self.interpreters = interpretation.Interpreters(state.interpreters)
        self.fleet = fleet.Fleet()
        self.decision_cache = decision_cache.DecisionCache(self.fleet)
        self.policies = claims.PolicyIndex()
        self.known_policies: dict[PolicyRef, KnownPolicy] = {}
        self.overrides = selection.Overrides()
        self.leaving: set[str] = set()
        self.not_ready: set[str] = set()
        self._prioritizing: set[PolicyRef] = set()
        self._queue = member_facts.Queue()
        self._folds = {
            partition.topic: verdicts.PartitionFold(partition, validation_manifests.check)
            for partition in state.inputs
        }
        self._restore(state)

    @property
    def state(self) -> FactsState:
        """Return the state for a snapshot; use it before the next ``take``, because it shares data with the facts."""
        self._state.policies = list(self.known_policies.values())
        self._state.interpreters, self._state.overrides = list(self.interpreters), list(self.overrides)
        self._state.emptied = self.emptied
        return self._state

    def copy(self) -> "Facts":
        """Return a copy that shares no data."""
        return Facts(msgspec.json.decode(msgspec.json.encode(self.state), type=FactsState))

    @property
    def has_priorities(self) -> bool:
        """Whether any policy sets a scheduling priority; if none does, ranking is skipped."""
        return bool(self._prioritizing)

    def interpreter(self, ref: shapes.WorkloadRef) -> interpretation.Interpreter | None:
        """Return the interpreter of a kind; None if there is none."""
        return self.interpreters.get(ref.api_version, ref.kind)

    def version_of(self, cluster: str) -> int:
        """Return the write version of a cluster's last write; 0 if it is not a member."""
        head = self._folds[topics.CLUSTERS].state.heads.get(cluster)
        return head.version if head else 0

    def uid_of(self, cluster: str) -> str:
        """Return the uid of a member cluster, empty for no member; a later cluster of this name has another uid."""
        head = self._folds[topics.CLUSTERS].state.heads.get(cluster)
        return head.uid if head else ""

    def waiting(self, is_waiting: Callable[[str, Health, "Facts"], bool]) -> list[tuple[int, str]]:
        """Return the ``not_ready`` clusters for which ``is_waiting`` holds, as (since_ms, name), sorted.

        The result is cached per cluster: ``is_waiting`` is evaluated again only for clusters that changed, so all
        calls must pass the same predicate.
        """

        def since_ms(name: str) -> int | None:
            health = self.members[name].health if name in self.not_ready else None
            return health.since_ms if health and is_waiting(name, health, self) else None

        return self._queue.ordered(self.not_ready, since_ms)

    def take(self, record: StoredRecord) -> list[Changed]:
        """Fold the next record of a fact topic and return the resulting changes of the facts."""
        verdict = self._folds[record.topic].take(record)
        self.ends[record.topic] = record.offset + 1
        match verdict:
            case verdicts.Skipped():
                return []
            case verdicts.Refused(envelope=envelope):
                return [
                    changed(FactRefused(verdict), Cause(story=envelope.id if envelope else ""), record.offset)
                ]
            case verdicts.Taken(envelope=envelope):
                story = envelope.correlationid or envelope.id
                cause = Cause(str(record.position), story, envelope.trace, verdict.at_ms)
                return [changed(change, cause, record.offset) for change in self._apply(verdict)]

    def _restore(self, state: FactsState) -> None:
        """Rebuild what is derived from clusters, policies and overrides.

        Each Raw is copied: it is a view of the snapshot's buffer and would keep all of it in memory.
        """
        replace = msgspec.structs.replace
        for name, cluster in state.clusters.items():
            owners = cluster.spec.managed_fields
            owners = tuple(replace(owner, fields_v1=owner.fields_v1.copy()) for owner in owners)
            self._put_cluster(name, replace(cluster, spec=replace(cluster.spec, managed_fields=owners)))
            self.fleet.put(member_facts.manifest(name, cluster))
        for known_policy in state.policies:
            spec = replace(known_policy.policy.spec, placement=known_policy.policy.spec.placement.copy())
            self._put_policy(replace(known_policy, policy=replace(known_policy.policy, spec=spec)))
        for override in state.overrides:
            self.overrides.put(replace(override, policy=override_objects.with_own_buffers(override.policy)))
        state.policies, state.overrides = [], []

    def _put_policy(self, known_policy: KnownPolicy) -> PolicyChanged:
        ref = known_policy.policy.ref
        self.known_policies[ref] = known_policy
        if known_policy.policy.spec.schedule_priority is None:
            self._prioritizing.discard(ref)
        else:
            self._prioritizing.add(ref)
        return PolicyChanged(ref, self.policies.put(known_policy.policy))

    def _apply(self, taken: verdicts.Taken) -> list[Change]:
        if taken.record.topic == topics.CLUSTERS:
            self._queue.changed.add(taken.record.key)
            return self._apply_to_cluster(taken)
        match taken.data:
            case policies.PolicyApplied(manifest=raw) if taken.head:
                policy = policy_objects.decode(raw)
                return [self._put_policy(KnownPolicy(policy, taken.head.version, taken.head.uid))]
            case policies.PolicyDeleted(policy=ref):
                del self.known_policies[ref]
                self._prioritizing.discard(ref)
                return [PolicyChanged(ref, (self.policies.remove(ref),))]
            case policies.InterpreterApplied(manifest=raw) if taken.manifest:
                return self.interpreters.put(taken.manifest.metadata.name, raw)
            case policies.InterpreterDeleted(name=name):
                return self.interpreters.drop(name)
            case policies.ConfigurationApplied(manifest=raw) if taken.manifest:
                return self._apply_configuration(taken.manifest, raw, taken.record.offset)
            case policies.ConfigurationDeleted(object=ref):
                return self._drop_configuration(ref)
            case _:
                return self._apply_priority_class(taken.data)

    def _apply_to_cluster(self, taken: verdicts.Taken) -> list[Change]:
        name, data = taken.record.key, taken.data
        if isinstance(data, clusters.MemberWrite):
            return []  # the event matters to the simulated member only
        old = self.fleet.get(name)
        if isinstance(data, clusters.ClusterLeft):
            return self._drop_cluster(name, old)
        before = self.members.get(name)
        if before is None:
            before = _new_member(data, taken.at_ms)
        cluster = with_event(before, data, taken.at_ms)
        self._put_cluster(name, cluster)
        match data:
            case clusters.ClusterHealthChanged():
                return _health_changes(name, before.health, cluster.health)
            case clusters.ClusterConditionsReported():
                is_change = cluster.statuses != before.statuses
                return [ConditionsChanged(name)] if is_change else []
            case clusters.CapacityReported():
                self.fleet.report(name, member_facts.summary(cluster.capacity))
                self.quota_limits.put(name, data.quotas)
                return [CapacityGrew(name)]
            case clusters.ClusterTainted(taint=taint) if _is_emptied(taken, taint):
                self.emptied = (taken.at_ms, name)
            case _:
                pass
        new = member_facts.manifest(name, cluster)
        if new == old:
            return []
        self.fleet.put(new)
        assigned = [key for key, quota in self.quotas.items() if name in quota.quotas] if old is None else []
        return [ClusterChanged(name, old, new), *map(QuotaChanged, assigned)]

    def _put_cluster(self, name: str, cluster: Cluster) -> None:
        self.members[name] = cluster
        if cluster.leaving_ms is not None:
            self.leaving.add(name)
        if cluster.health is None or cluster.health.status == READY:
            self.not_ready.discard(name)
        else:
            self.not_ready.add(name)

    def _drop_cluster(self, name: str, old: manifests.ClusterManifest | None) -> list[Change]:
        self.members.pop(name, None)
        self.fleet.remove(name)
        self.leaving.discard(name)
        self.not_ready.discard(name)
        self.quota_limits.put(name, ())
        return [ClusterChanged(name, old, None)]

    def _apply_configuration(
        self, manifest: kube_objects.Manifest, raw: msgspec.Raw, offset: int
    ) -> list[Change]:
        if manifest.api_version != known_kinds.POLICY_GROUP:
            return []
        if manifest.kind == taint_objects.KIND:
            self.taint_policies[manifest.metadata.name] = taint_objects.decode(raw)
            # Taint policies determine from which clusters workloads must be evicted, so the cached queue is no longer
            # valid.
            self._queue = member_facts.Queue()
            return [TaintPolicyChanged()]
        if manifest.kind in override_objects.KINDS:
            return self._put_override(selection.KnownOverride(override_objects.decode(raw), offset))
        if manifest.kind == federated_quotas.KIND:
            return self._put_quota(quota_assignments.read(manifest, raw, offset), quota_amounts.limits(raw))
        return []

    def _put_override(self, override: selection.KnownOverride) -> list[Change]:
        ref = override.policy.ref
        waiting = () if ref in self.overrides else self.policies.dependents(ref)
        changed = OverrideChanged(self.overrides.put(override))
        return [changed, *(PolicyChanged(policy, (selected,)) for policy, selected in waiting)]

    def _drop_configuration(self, ref: shapes.WorkloadRef) -> list[Change]:
        if ref.api_version != known_kinds.POLICY_GROUP:
            return []
        if ref.kind == taint_objects.KIND:
            del self.taint_policies[ref.name]
            self._queue = member_facts.Queue()
            return [TaintPolicyChanged()]
        if ref.kind == federated_quotas.KIND:
            return self._put_quota(quota_assignments.Assignments(ref, 0, {}), {})
        policy = PolicyRef(kind=ref.kind, name=ref.name, namespace=ref.namespace)
        return [OverrideChanged((self.overrides.remove(policy),))]

    def _put_quota(
        self, assigned: quota_assignments.Assignments, overall: quota_amounts.Amounts
    ) -> list[Change]:
        keys = quota_assignments.put(self.quotas, assigned)
        changed = quota_amounts.put(self.overall, assigned.ref.namespace, assigned.ref.name, overall)
        return [*(QuotaChanged(key, is_removed=not assigned.quotas) for key in keys), *changed]

    def _apply_priority_class(self, event: shapes.Event) -> list[Change]:
        if not isinstance(event, policies.PriorityClassDeclared | policies.PriorityClassGone):
            # Namespaces and other configuration matter to the write API only.
            return []
        previous = self.priority_classes.pop(event.name, None)
        new = None
        if isinstance(event, policies.PriorityClassDeclared):
            new = priorities.PriorityClass(event.value, event.global_default, event.preemption_policy)
            self.priority_classes[event.name] = new
        return [] if new == previous else [PriorityClassChanged(event.name)]


def _new_member(data: shapes.Event, at_ms: int) -> Cluster:
    """Return the cluster that an event adds.

    Raises TypeError for any event but a join: the verdicts refuse other events about a cluster that is not a member.
    """
    if not isinstance(data, clusters.ClusterJoined):
        message = f"{type(data).__name__} of a cluster that never joined was taken"
        raise TypeError(message)
    return Cluster(joined(data, at_ms))


def _health_changes(name: str, before: Health | None, health: Health | None) -> list[Change]:
    """Return the change by a health report.

    Scheduling ignores health, as in Karmada; only taints exclude a cluster.
    """
    if health is None or health is before:
        return []
    return [HealthReported(name, health, before is None or before.status != health.status)]


def _is_emptied(taken: verdicts.Taken, taint: clusters.Taint) -> bool:
    """Whether the engine added the taint to evict all workloads; users' taints do not delay the next cluster's turn."""
    return taint.effect == Effect.NO_EXECUTE and taken.envelope.source.startswith(ids.SHARD_SOURCE)
