"""Random histories of a control plane for tests of the views; equal for equal seeds."""

import random

import msgspec

from events import (
    clusters,
    decisions,
    enums,
    health,
    keys,
    kube_objects,
    links,
    policies,
    rebalance_decisions,
    records,
    rejections,
    shapes,
    specs,
    works,
)
from projections.object_tables import Kind
from tests.builders.inputs import deployment, policy, quota, rebalancer, ref
from tests.builders.manifests import manifest, on, raw
from tests.projections.logs import RecordBuilder

MEMBERS = ("member1", "member2", "member3")
PLACEMENT = on(*MEMBERS)
WORK = Kind("work.karmada.io/v1alpha1", "Work")
POLICY = policy("everything", PLACEMENT)
"""It places all Deployments."""


def owner(at_ms: int) -> shapes.FieldsOwner:
    """Return the manager of a status that a client wrote."""
    return shapes.FieldsOwner(
        manager=f"controller-{at_ms}", operation="Update", api_version="v1", fields_v1=raw({"f:status": {}})
    )


def declared(key: str, name: str, replicas: int, offset: int = 0) -> decisions.BindingDeclared:
    """Return the binding of a Deployment."""
    return decisions.BindingDeclared(
        key=key,
        template=ref(name),
        uid="00000000-0000-4000-8000-000000000000",
        generation=1,
        offset=offset,
        digest="d1",
        replicas=replicas,
        requests={"cpu": "100m"},
    )


def claimed(key: str, placement: object = PLACEMENT) -> decisions.BindingClaimed:
    """Return the claim of ``POLICY`` on a binding."""
    return decisions.BindingClaimed(
        key=key,
        policy=shapes.PolicyRef(kind="PropagationPolicy", name="everything", namespace="default"),
        permanent_id="11111111-1111-4111-8111-111111111111",
        version=1,
        placement=raw(placement),
    )


def decided(key: str, **replicas: int) -> decisions.ScheduleDecided:
    """Return a decision for these clusters."""
    return decisions.ScheduleDecided(
        key=key,
        generation=2,
        trigger="PlacementChanged",
        mode="Steady",
        clusters=tuple(shapes.TargetCluster(name=name, replicas=count) for name, count in replicas.items()),
    )


def failed(key: str) -> decisions.ScheduleFailed:
    """Return a failure to schedule a binding, which keeps its clusters."""
    return decisions.ScheduleFailed(
        key=key,
        generation=3,
        trigger="ReplicasChanged",
        mode="Steady",
        reason="NoClusterFit",
        message="0/3 clusters are available: 3 cluster(s) had untolerated taint {maintenance:NoExecute}.",
    )


def applied(key: str, app: str, cluster: str) -> works.WorkApplied:
    """Return the work of a Deployment in a cluster."""
    return works.WorkApplied(
        cluster=cluster,
        key=key,
        template=ref(app),
        shard=keys.shard_of(key),
        offset=0,
        digest="d1",
        term=1,
        step=1,
        replicas=2,
    )


def status(key: str, **ready: int) -> decisions.StatusAggregated:
    """Return the status that these clusters report, all of it healthy."""
    members = tuple(
        decisions.MemberStatus(
            cluster=name,
            applied=True,
            health=enums.Health.HEALTHY,
            replicas=count,
            updated=count,
            ready=count,
            available=count,
        )
        for name, count in ready.items()
    )
    return decisions.StatusAggregated(key=key, members=members, observed_generation=1, fully_applied=True)


class Story:
    """Writes random events in sequence."""

    def __init__(self, seed: int) -> None:
        self._builder = RecordBuilder()
        self._random = random.Random(seed)  # noqa: S311  # chance with a seed is what a story needs
        self._inputs: list[records.Record] = []

    def opening(self) -> list[records.Record]:
        """Return three clusters and a policy."""
        joined = [clusters.ClusterJoined(name=name, region="eu") for name in MEMBERS]
        return [self._builder.input(data) for data in (*joined, POLICY)]

    def more(self) -> list[records.Record]:
        """Return random records about one of a few workloads, valid or not."""
        name = f"app-{self._random.randrange(8)}"
        key = keys.binding_key("Deployment", "default", name)
        spread = {member: self._random.randrange(4) for member in MEMBERS}
        records_of = self._random.choice(
            (
                self._apply,
                self._placed_records,
                self._evict,
                self._report,
                self._fail,
                self._ask,
                self._disturb,
                self._write_status,
                self._delete,
                self._divide,
            )
        )
        return records_of(name, key, spread)

    def _apply(self, name: str, key: str, spread: dict[str, int]) -> list[records.Record]:
        inputs = [self._builder.input(deployment(name, sum(spread.values())))]
        if self._random.random() < 0.2:
            inputs.append(self._builder.input(specs.TemplateDeleted(template=ref(name))))
            withdrawn = decisions.BindingWithdrawn(key=key, reason="TemplateDeleted")
            return [*inputs, *self._builder.decide(withdrawn)]
        self._inputs += inputs
        return inputs

    def _write_status(self, name: str, _key: str, spread: dict[str, int]) -> list[records.Record]:
        """Writes of two objects and their statuses in any order, some without the others."""
        kept = shapes.WorkloadRef(
            api_version="policy.karmada.io/v1alpha1",
            kind="FederatedResourceQuota",
            name=name,
            namespace="default",
        )
        status, owned = {"bars": raw(spread)}, (owner(self._builder.at_ms),)
        data: list[shapes.Event] = [
            deployment(name, sum(spread.values())),
            specs.TemplateStatusWritten(template=ref(name), status=status, managed_fields=owned),
            quota(name),
            policies.ConfigurationStatusWritten(object=kept, status=status, managed_fields=owned),
            policies.ConfigurationDeleted(object=kept),
        ]
        sample = self._random.sample(data, self._random.randrange(1, len(data) + 1))
        return [self._builder.input(event) for event in sample]

    def _delete(self, name: str, key: str, _spread: dict[str, int]) -> list[records.Record]:
        """Deletions of a template with its binding and one of its works, and of a rebalancer."""
        deletions = (
            specs.TemplateDeleted(template=ref(name)),
            specs.RebalancerDeleted(name=f"rebalance-{name}"),
        )
        removed = works.WorkRemoved(cluster=self._random.choice(MEMBERS), key=key, term=1, step=4)
        withdrawn = decisions.BindingWithdrawn(key=key, reason="TemplateDeleted")
        return [*(self._builder.input(data) for data in deletions), *self._builder.decide(withdrawn, removed)]

    def _divide(self, name: str, _key: str, _spread: dict[str, int]) -> list[records.Record]:
        """Writes and deletions of a namespace, which may not be propagated, and of a fourth cluster."""
        skipped = (
            {"namespace.karmada.io/skip-auto-propagation": "true"} if self._random.random() < 0.3 else {}
        )
        value = manifest("v1", "Namespace", f"shop-{name}", metadata={"labels": skipped})
        data: list[shapes.Event] = [
            policies.NamespaceApplied(manifest=raw(value)),
            policies.NamespaceDeleted(name=f"shop-{name}"),
            clusters.ClusterJoined(name="member4"),
            clusters.ClusterLeaving(name="member4"),
            clusters.ClusterLeft(name="member4"),
        ]
        return [self._builder.input(event) for event in self._random.sample(data, self._random.randint(1, 3))]

    def _placed_records(self, name: str, key: str, spread: dict[str, int]) -> list[records.Record]:
        digest = kube_objects.manifest_digest(deployment(name, sum(spread.values())).manifest)
        applied = [
            works.WorkApplied(
                cluster=member,
                key=key,
                template=ref(name),
                shard=keys.shard_of(key),
                offset=0,
                digest=digest,
                term=1,
                step=1,
                replicas=count,
            )
            for member, count in spread.items()
        ]
        return self._builder.decide(
            declared(key, name, sum(spread.values())), claimed(key), decided(key, **spread), *applied
        )

    def _evict(self, name: str, key: str, spread: dict[str, int]) -> list[records.Record]:
        member = self._random.choice(tuple(spread))
        taint = clusters.Taint(key=f"maintenance-{name}", effect="NoExecute")
        self._random.shuffle(self._inputs)
        eviction = decisions.EvictionStarted(
            key=key,
            cluster=member,
            reason="TaintUntolerated",
            producer="TaintManager",
            purge_mode="Gracefully",
            created_ms=self._builder.at_ms,
            replicas=spread[member],
        )
        over = decisions.EvictionFinished(key=key, cluster=member, reason="Healthy")
        removed = works.WorkRemoved(cluster=member, key=key, term=1, step=2)
        return [
            self._builder.input(clusters.ClusterTainted(name=member, taint=taint)),
            *self._builder.decide(eviction),
            *self._builder.decide(over, removed),
            self._builder.input(clusters.ClusterUntainted(name=member, key=taint.key)),
        ]

    def _report(self, _name: str, key: str, spread: dict[str, int]) -> list[records.Record]:
        reports = [
            self._builder.input(health.WorkloadReported(cluster=member, key=key, term=1, step=1, ready=count))
            for member, count in spread.items()
        ]
        room = clusters.CapacityReported(name="member1", allocatable={"cpu": "4", "pods": "110"})
        return [*reports, self._builder.input(room), *self._builder.decide(status(key, **spread))]

    def _fail(self, _name: str, key: str, _spread: dict[str, int]) -> list[records.Record]:
        """A failure that removes all clusters, or one after which a cluster of the binding is suspended."""
        failure = msgspec.structs.replace(failed(key), emptied=self._random.random() < 0.5)
        suspended = works.WorkSuspended(cluster="member2", key=key, term=1, step=3)
        return self._builder.decide(failure, *(() if failure.emptied else (suspended,)))

    def _ask(self, name: str, key: str, spread: dict[str, int]) -> list[records.Record]:
        rebalancer_name = f"rebalance-{name}"
        uid, at_ms = "22222222-2222-4222-8222-222222222222", self._builder.at_ms
        ask = links.RescheduleRequested(
            rebalancer=rebalancer_name, uid=uid, generation=1, at_ms=at_ms, key=key, workload=ref(name)
        )
        triggered = decisions.RescheduleTriggered(
            key=key, rebalancer=rebalancer_name, uid=uid, generation=1, at_ms=at_ms
        )
        return [
            self._builder.input(rebalancer(rebalancer_name, ref(name))),
            self._builder.input(ask),
            *self._builder.decide(triggered, decided(key, **spread)),
            *self._builder.decide(
                rebalance_decisions.RebalanceStarted(
                    name=rebalancer_name, uid=uid, generation=1, at_ms=at_ms, asked=(ref(name),)
                )
            ),
        ]

    def _disturb(self, name: str, key: str, _spread: dict[str, int]) -> list[records.Record]:
        """A repeated input, a late write, a step of a stale owner, and bytes that are no event."""
        late = specs.TemplateDeleted(template=ref(name), expects=9_999)
        stale = RecordBuilder().step(keys.shard_of(key), [decided(key, member1=99)])
        hostile = records.record("specs", keys.shard_of(key), key, {"ce_id": "x"}, b'{"manifest": [[[[')
        refused = rejections.InputRejected(verdict="refused", reason="no event", topic="specs", key=key)
        rejected = self._builder.step(0, [refused])
        return [*self._inputs[-1:], self._builder.input(late), *stale, hostile, *rejected]


KEY = keys.binding_key("Deployment", "default", "foo")


def placed(builder: RecordBuilder) -> list[records.Record]:
    """Records of a Deployment that is placed and then moved; record 2 is the first step, 6 the second."""
    return [
        builder.input(deployment("foo", 3)),
        *builder.decide(
            declared(KEY, "foo", 3), claimed(KEY), decided(KEY, member1=2, member2=1), cause="specs/3/0"
        ),
        *builder.decide(decided(KEY, member2=3)),
    ]
