"""Facts that every shard shares: clusters, policies, overrides and interpreters, folded from two partitions.

Folding a record returns its changes, with the old and the new value. A shard derives the keys to decide again
from the change and its own state alone, so replay touches the same keys.
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
from engine.domain.clusters import Health, health_after
from engine.objects import clusters as manifests
from engine.objects import interpreters as interpreter_objects
from engine.objects import policies as policy_objects
from engine.objects import priorities
from engine.objects import taint_policies as taint_objects
from engine.overrides import policies as override_objects
from engine.overrides import selection
from engine.placement import decision_cache, fleet
from events import clusters, ids, kube_objects, policies, shapes, topics, vocabulary
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
    clusters: list[manifests.ClusterManifest]
    policies: list[KnownPolicy]
    interpreters: list[interpretation.Interpreter]
    inputs: list[verdicts.PartitionState]
    health: dict[str, Health] = {}
    taint_policies: dict[str, taint_objects.TaintPolicy] = {}
    overrides: list[selection.KnownOverride] = []
    emptied: tuple[int, str] = (0, "")
    priority_classes: dict[str, priorities.PriorityClass] = {}
    conditions: dict[str, dict[str, str]] = {}
    quotas: dict[str, quota_assignments.Assignments] = {}
    limits: QuotaAmounts = {}
    overall: quota_amounts.Limits = {}


class Facts:
    """Fold of the fact topics, from a state or from the beginning; it takes ownership of the state.

    ``ends`` are the next offsets by topic. ``emptied`` is the time (ms since 1970; 0: none) and the name of
    the cluster that the engine last began to empty. ``conditions`` maps each cluster to the conditions that clients
    report: status by type. ``quotas`` are the assignments of FederatedResourceQuotas, by the key of the
    ResourceQuota's binding; ``quota_limits`` are the quotas that clusters report, ``overall`` the overall limits of
    FederatedResourceQuotas. ``leaving`` holds the leaving clusters, ``troubled`` those whose last known health is not
    ready.
    """

    def __init__(self, state: FactsState | None = None) -> None:
        self.fleet = fleet.Fleet()
        self.decision_cache = decision_cache.DecisionCache(self.fleet)
        self.policies = claims.PolicyIndex()
        self.known_policies: dict[PolicyRef, KnownPolicy] = {}
        self.interpreters = interpretation.Interpreters()
        self.health: dict[str, Health] = {}
        self.taint_policies: dict[str, taint_objects.TaintPolicy] = {}
        self.overrides = selection.Overrides()
        self.emptied = (0, "")
        self.priority_classes: dict[str, priorities.PriorityClass] = {}
        self.conditions: dict[str, dict[str, str]] = {}
        self.quotas: dict[str, quota_assignments.Assignments] = {}
        self.quota_limits = QuotaLimits()
        self.overall: quota_amounts.Limits = {}
        self.leaving: set[str] = set()
        self.troubled: set[str] = set()
        self._prioritizing: set[PolicyRef] = set()
        self._queue = member_facts.Queue()
        self.ends: dict[str, int] = dict.fromkeys(topics.FACT_TOPICS, 0)
        inputs = [verdicts.PartitionState(topic, 0) for topic in topics.FACT_TOPICS]
        if state is not None:
            inputs = state.inputs
            self._restore(state)
        self._folds = {
            partition.topic: verdicts.PartitionFold(partition, validation_manifests.check)
            for partition in inputs
        }

    @property
    def state(self) -> FactsState:
        """Return the state for a snapshot. It shares its parts with the facts: use it before the next ``take``."""
        members = (self.fleet.get(name) for name in self.fleet.names())
        return FactsState(
            ends=self.ends,
            clusters=[cluster for cluster in members if cluster],
            policies=list(self.known_policies.values()),
            interpreters=list(self.interpreters),
            inputs=[fold.state for fold in self._folds.values()],
            health=self.health,
            taint_policies=self.taint_policies,
            overrides=list(self.overrides),
            emptied=self.emptied,
            priority_classes=self.priority_classes,
            conditions=self.conditions,
            quotas=self.quotas,
            limits=self.quota_limits.free,
            overall=self.overall,
        )

    def copy(self) -> "Facts":
        """Return a copy that shares no data."""
        return Facts(msgspec.json.decode(msgspec.json.encode(self.state), type=FactsState))

    @property
    def has_priorities(self) -> bool:
        """Whether any policy sets a scheduling priority; if none does, ranking is skipped."""
        return bool(self._prioritizing)

    def reading(self, ref: shapes.WorkloadRef) -> shapes.Reading | None:
        """Return how members read objects of a kind, in addition to the built-in rules; None if these suffice."""
        interpreter = self.interpreter(ref)
        return (
            interpreter.reading if interpreter else interpretation.READINGS.get((ref.api_version, ref.kind))
        )

    def status_fields(self, ref: shapes.WorkloadRef) -> tuple[interpreter_objects.StatusField, ...]:
        """Return the status fields of a kind that are aggregated over all members."""
        interpreter = self.interpreter(ref)
        return (
            interpreter.status_fields
            if interpreter
            else interpretation.FIELDS.get((ref.api_version, ref.kind), ())
        )

    def interpreter(self, ref: shapes.WorkloadRef) -> interpretation.Interpreter | None:
        """Return the interpreter of a custom kind; None if there is none."""
        return self.interpreters.get(ref.api_version, ref.kind)

    def version_of(self, cluster: str) -> int:
        """Return the write version of a cluster's last write; 0 if it is no member."""
        head = self._folds[topics.CLUSTERS].state.heads.get(cluster)
        return head.version if head else 0

    def uid_of(self, cluster: str) -> str:
        """Return the uid of a member cluster, empty for no member; a later cluster of this name has another uid."""
        head = self._folds[topics.CLUSTERS].state.heads.get(cluster)
        return head.uid if head else ""

    def waiting(self, is_waiting: Callable[[str, Health, "Facts"], bool]) -> list[tuple[int, str]]:
        """Return the ``troubled`` clusters for which ``is_waiting`` holds, as (since_ms, name), sorted.

        The result is cached per cluster: ``is_waiting`` is evaluated again only for clusters that changed, so all
        calls must pass the same predicate.
        """

        def since_ms(name: str) -> int | None:
            health = self.health[name] if name in self.troubled else None
            return health.since_ms if health and is_waiting(name, health, self) else None

        return self._queue.ordered(self.troubled, since_ms)

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
        replace = msgspec.structs.replace
        self.ends = state.ends
        for cluster in state.clusters:
            self._put_cluster(cluster)
        for known_policy in state.policies:
            # A copy: a Raw is a view of the snapshot's buffer and would keep all of it in memory.
            spec = replace(known_policy.policy.spec, placement=known_policy.policy.spec.placement.copy())
            self._put_policy(replace(known_policy, policy=replace(known_policy.policy, spec=spec)))
        self.interpreters = interpretation.Interpreters(state.interpreters)
        for name, health in state.health.items():
            self._put_health(name, health)
        self.taint_policies = dict(state.taint_policies)
        self.emptied = state.emptied
        self.priority_classes = dict(state.priority_classes)
        self.conditions = dict(state.conditions)
        self.quotas = dict(state.quotas)
        self.quota_limits = QuotaLimits(state.limits)
        self.overall = dict(state.overall)
        for override in state.overrides:
            self.overrides.put(replace(override, policy=override_objects.with_own_buffers(override.policy)))

    def _put_policy(self, known_policy: KnownPolicy) -> None:
        ref = claims.reference(known_policy.policy)
        self.known_policies[ref] = known_policy
        self.policies.put(known_policy.policy)
        if known_policy.policy.spec.schedule_priority is None:
            self._prioritizing.discard(ref)
        else:
            self._prioritizing.add(ref)

    def _apply(self, taken: verdicts.Taken) -> list[Change]:
        if taken.record.topic == topics.CLUSTERS:
            self._queue.changed.add(taken.record.key)
            return self._apply_to_cluster(taken)
        match taken.data:
            case policies.PolicyApplied(manifest=raw) if taken.head:
                return self._apply_policy(raw, taken.head)
            case policies.PolicyDeleted(policy=ref):
                del self.known_policies[ref]
                self._prioritizing.discard(ref)
                selected = self.policies.selection(ref)
                self.policies.remove(ref.kind, ref.namespace, ref.name)
                return [PolicyChanged(ref, (selected,))]
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
        match taken.data:
            case clusters.CapacityReported() as report:
                return self._report(report)
            case clusters.ClusterHealthChanged() as health_change:
                return self._apply_health_report(health_change, taken.at_ms)
            case clusters.ClusterConditionsReported() as report:
                return self._apply_conditions(report)
            case clusters.ClusterLeft(name=name):
                old = self.fleet.get(name)
                self.fleet.remove(name)
                self.leaving.discard(name)
                self.health.pop(name, None)
                self.conditions.pop(name, None)
                self.quota_limits.put(name, ())
                self.troubled.discard(name)
                return [ClusterChanged(name, old, None)]
            case (
                clusters.MemberObjectApplied() | clusters.MemberObjectDeleted() | clusters.MemberPodDeleted()
            ):
                return []  # the event matters to the simulated member only
            case _:
                return self._change_cluster(taken)

    def _apply_policy(self, raw: msgspec.Raw, head: verdicts.Head) -> list[Change]:
        policy = policy_objects.decode(raw)
        ref = claims.reference(policy)
        selected = self.policies.selection(ref)
        self._put_policy(KnownPolicy(policy, head.version, head.uid))
        return [PolicyChanged(ref, (selected, self.policies.selection(ref)))]

    def _apply_configuration(
        self, manifest: kube_objects.Manifest, raw: msgspec.Raw, offset: int
    ) -> list[Change]:
        if manifest.api_version != known_kinds.POLICY_GROUP:
            return []
        if manifest.kind == taint_objects.KIND:
            self.taint_policies[manifest.metadata.name] = taint_objects.decode(raw)
            # The taint policies decide which clusters wait, so the cached queue is no longer valid.
            self._queue = member_facts.Queue()
            return [TaintPolicyChanged()]
        if manifest.kind in override_objects.KINDS:
            policy = override_objects.decode(raw)
            ref = selection.reference(policy)
            selected = self.overrides.selection(ref)
            self.overrides.put(selection.KnownOverride(policy, offset))
            return [OverrideChanged((selected, self.overrides.selection(ref)))]
        if manifest.kind == federated_quotas.KIND:
            return self._put_quota(quota_assignments.read(manifest, raw, offset), quota_amounts.limits(raw))
        return []

    def _drop_configuration(self, ref: shapes.WorkloadRef) -> list[Change]:
        if ref.api_version != known_kinds.POLICY_GROUP:
            return []
        if ref.kind == taint_objects.KIND:
            del self.taint_policies[ref.name]
            self._queue = member_facts.Queue()
            return [TaintPolicyChanged()]
        if ref.kind == federated_quotas.KIND:
            return self._put_quota(quota_assignments.none(ref), {})
        policy = PolicyRef(kind=ref.kind, name=ref.name, namespace=ref.namespace)
        selected = self.overrides.selection(policy)
        self.overrides.remove(policy)
        return [OverrideChanged((selected,))]

    def _put_quota(
        self, assigned: quota_assignments.Assignments, overall: quota_amounts.Amounts
    ) -> list[Change]:
        keys = quota_assignments.put(self.quotas, assigned)
        changed = quota_amounts.put(self.overall, assigned.ref.namespace, assigned.ref.name, overall)
        return [*map(QuotaChanged, keys), *changed]

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

    def _apply_health_report(self, report: clusters.ClusterHealthChanged, at_ms: int) -> list[Change]:
        """Fold a health report.

        Scheduling ignores health, as in Karmada; only taints exclude a cluster.
        """
        previous = self.health.get(report.name)
        health = health_after(previous, report, at_ms)
        if health is None:
            return []
        self._put_health(report.name, health)
        return [HealthReported(report.name, health, previous is None or previous.status != health.status)]

    def _apply_conditions(self, report: clusters.ClusterConditionsReported) -> list[Change]:
        previous = self.conditions.pop(report.name, {})
        conditions = {condition.type: condition.status for condition in report.conditions}
        if conditions:
            self.conditions[report.name] = conditions
        return [] if conditions == previous else [ConditionsChanged(report.name)]

    def _report(self, report: clusters.CapacityReported) -> list[Change]:
        self.fleet.report(report.name, member_facts.summary(report))
        self.quota_limits.put(report.name, report.quotas)
        return [CapacityGrew(report.name)]

    def _change_cluster(self, taken: verdicts.Taken) -> list[Change]:
        name = taken.record.key
        if isinstance(taken.data, clusters.ClusterTainted) and _is_emptied(taken, taken.data.taint):
            self.emptied = (taken.at_ms, name)
        old = self.fleet.get(name)
        new = member_facts.changed(old, taken)
        if new == old:
            return []
        self._put_cluster(new)
        assigned = [key for key, quota in self.quotas.items() if name in quota.quotas] if old is None else []
        return [ClusterChanged(name, old, new), *map(QuotaChanged, assigned)]

    def _put_health(self, name: str, health: Health) -> None:
        self.health[name] = health
        if health.status == member_facts.READY:
            self.troubled.discard(name)
        else:
            self.troubled.add(name)

    def _put_cluster(self, cluster: manifests.ClusterManifest) -> None:
        self.fleet.put(cluster)
        if cluster.metadata.deletion_timestamp is not None:
            self.leaving.add(cluster.metadata.name)


def _is_emptied(taken: verdicts.Taken, taint: clusters.Taint) -> bool:
    """Whether the engine added the taint to empty the cluster; users' taints do not delay the next cluster."""
    return taint.effect == vocabulary.NO_EXECUTE and taken.envelope.source.startswith(ids.SHARD_SOURCE)
