"""One event of each type, with a value in every field."""

import hashlib
from typing import Final

import msgspec

from events import catalogue as types
from events import (
    cluster_decisions,
    clusters,
    decisions,
    enums,
    health,
    keys,
    links,
    partitioning,
    policies,
    rebalance_decisions,
    rejections,
    shapes,
    specs,
    topics,
    works,
)
from events.envelope import Envelope
from events.objects import read
from events.validation import verdicts
from tests.golden import observation_samples, quota_samples

AT_MS: Final = 1_716_630_591_120
"""2024-05-25T09:49:51.120Z."""

_TEMPLATE: Final = shapes.WorkloadRef(
    api_version="apps/v1", kind="Deployment", name="foo", namespace="default"
)
_DEPENDENCY: Final = shapes.WorkloadRef(
    api_version="v1", kind="ConfigMap", name="settings", namespace="default"
)
_POLICY: Final = shapes.PolicyRef(kind="PropagationPolicy", name="nginx-propagation", namespace="default")
_STATE: Final = (shapes.StateRule(alias="example.com/job", path="{.jobStatus.jobID}"),)
_READING: Final = shapes.Reading(
    values=("{.jobStatus.jobID}",),
    health=shapes.HealthRule(path=".jobStatus.state", values=("RUNNING",)),
    retained=("spec.paused",),
)
_OVERRIDE: Final = shapes.OverrideRef(
    kind="OverridePolicy", name="eu", namespace="default", offset=4, digest="7d793037a0760186", rules=(0, 2)
)
_PAIR: Final = ("member1", "member2")
_KEY: Final = "default/foo-deployment"
_OCCUPANT: Final = shapes.Occupant(
    key="default/bar-deployment", cluster="member1", priority=-5, replicas=3, requests={"cpu": "250m"}
)
_UID: Final = "1c2f8a52-97bd-4b5e-8d0a-5f3c1e7a9b46"
_DIGEST: Final = "5d41402abc4b2a76"
_STEP_DIGEST: Final = "9b74c9897bac770ffc029102a200c5de"


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


_DEPLOYMENT: Final = _raw(
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"foo","namespace":"default",'
    '"labels":{"app":"foo"}},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"foo",'
    '"image":"nginx","resources":{"limits":{"cpu":"10m","memory":"10Mi"}}}]}}}}'
)
_PROPAGATION: Final = _raw(
    '{"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy","metadata":{"name":'
    '"nginx-propagation","namespace":"default"},"spec":{"resourceSelectors":[{"apiVersion":"apps/v1",'
    '"kind":"Deployment","name":"foo"}],"placement":{"clusterAffinity":{"clusterNames":["member1"]}}}}'
)
_REBALANCER: Final = _raw(
    '{"apiVersion":"apps.karmada.io/v1alpha1","kind":"WorkloadRebalancer","metadata":{"name":"demo"},"spec":'
    '{"workloads":[{"apiVersion":"apps/v1","kind":"Deployment","name":"foo","namespace":"default"}]}}'
)
_NAMESPACE: Final = _raw('{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}')
_INTERPRETER: Final = _raw(
    '{"apiVersion":"config.reballast.io/v1alpha1","kind":"ReplicaInterpreter","metadata":{"name":"kafkas"},'
    '"spec":{"target":{"apiVersion":"example.io/v1","kind":"Kafka"},"replicasPath":"spec.size"}}'
)
_QUOTA: Final = _raw(
    '{"apiVersion":"policy.karmada.io/v1alpha1","kind":"FederatedResourceQuota","metadata":{"name":"foo",'
    '"namespace":"default"},"spec":{"overall":{"cpu":"8"}}}'
)
_KEPT: Final = shapes.WorkloadRef(api_version="v1", kind="FederatedResourceQuota", name="foo", namespace="a")
_PLACEMENT: Final = _raw('{"clusterAffinity":{"clusterNames":["member1"]}}')
_OWNER: Final = msgspec.json.decode(
    b'{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsV1":{},"time":"t","subresource":"status"}',
    type=shapes.FieldsOwner,
)

_FAILED: Final = (decisions.GroupFailure(index=1, message="no cluster exists"),)
_SPECS: Final[tuple[shapes.Event, ...]] = (
    specs.TemplateApplied(manifest=_DEPLOYMENT, expects=0),
    specs.TemplateDeleted(template=_TEMPLATE, expects=1),
    specs.RebalancerApplied(manifest=_REBALANCER, expects=0),
    specs.RebalancerDeleted(name="demo", expects=1),
    specs.TemplateStatusWritten(
        template=_TEMPLATE, status={"replicas": _raw("3")}, managed_fields=(_OWNER,), expects=1
    ),
    specs.SuspensionWritten(template=_TEMPLATE, scheduling=True, dispatching=True),
    specs.DeletionAllowed(template=_TEMPLATE, cluster="member1"),
)
_POLICIES: Final[tuple[shapes.Event, ...]] = (
    policies.PolicyApplied(manifest=_PROPAGATION, expects=0),
    policies.PolicyDeleted(policy=_POLICY, expects=1),
    policies.NamespaceApplied(manifest=_NAMESPACE, expects=0),
    policies.NamespaceDeleted(name="shop", expects=1),
    policies.InterpreterApplied(manifest=_INTERPRETER, expects=0),
    policies.InterpreterDeleted(name="kafkas", expects=1),
    policies.ConfigurationApplied(manifest=_QUOTA, expects=0),
    policies.ConfigurationDeleted(object=_KEPT, expects=1),
    policies.ConfigurationStatusWritten(
        object=_KEPT, status={"overall": _raw('{"cpu":"8"}')}, managed_fields=(_OWNER,), expects=1
    ),
    policies.PriorityClassDeclared(
        name="urgent", value=1_000, global_default=True, preemption_policy=enums.PreemptionPolicy.NEVER
    ),
    policies.PriorityClassGone(name="urgent"),
)
_TAINT: Final = clusters.Taint(key="maintenance", effect="NoExecute", value="soon", time_added_ms=AT_MS)
_CLUSTERS: Final[tuple[shapes.Event, ...]] = (
    clusters.ClusterJoined(
        name="member1",
        labels={"location": "us"},
        provider="huaweicloud",
        region="east",
        zones=("east-1", "east-2"),
        taints=(_TAINT,),
        apis=(clusters.ApiKind(group_version="apps/v1", kinds=("Deployment",)),),
        resource_models=(
            clusters.ResourceGrade(
                grade=1, ranges=(clusters.Quantities(name="cpu", min="250m", max="1.5Gi"),)
            ),
        ),
        sync_mode=enums.SyncMode.PULL,
        api_endpoint="https://member1.example:6443",
        id="5b0f6a34",
        proxy_url="http://proxy.example:3128",
        secret_ref=clusters.SecretRef(namespace="karmada-cluster", name="member1"),
        impersonator_secret_ref=clusters.SecretRef(namespace="karmada-cluster", name="member1-impersonator"),
        kubernetes_version="v1.36.2",
        annotations={"example.com/owner": "shop"},
        managed_fields=(_OWNER,),
        expects=0,
    ),
    clusters.ClusterLeaving(name="member1", expects=1),
    clusters.ClusterLeft(name="member1", uid=_UID, expects=1),
    clusters.ClusterLabelled(name="member1", labels={"location": "us"}, managed_fields=(_OWNER,), expects=1),
    clusters.ClusterDescribed(
        name="member1",
        provider="huaweicloud",
        region="east",
        zones=("east-1",),
        managed_fields=(_OWNER,),
        expects=1,
    ),
    clusters.ClusterTainted(name="member1", taint=_TAINT, managed_fields=(_OWNER,), expects=1),
    clusters.ClusterUntainted(
        name="member1", key="maintenance", effect="NoExecute", managed_fields=(_OWNER,), expects=1
    ),
    clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "8", "memory": "16Gi", "pods": "110"},
        allocated={"cpu": "250m"},
        allocating={"memory": "1Gi"},
        modelings=(clusters.GradeCount(grade=1, count=3),),
        nodes=3,
        nodes_ready=2,
        quotas=(clusters.NamespaceQuota(namespace="shop", free={"cpu": "500m"}),),
    ),
    clusters.ClusterHealthChanged(
        name="member1",
        ready=False,
        reason="ClusterNotReachable",
        message="no answer",
        grace_seconds=40,
        silent=True,
        heard_ms=AT_MS,
    ),
    clusters.ClusterApisReported(
        name="member1",
        apis=(clusters.ApiKind(group_version="sea.example.io/v1", kinds=("Ship",), names=("fleet",)),),
    ),
    clusters.ClusterConditionsReported(
        name="member1",
        conditions=(
            clusters.ClusterCondition(
                type="NetworkReady",
                status="False",
                reason="PacketLoss",
                message="half of all packets are lost",
                last_transition_ms=AT_MS,
            ),
        ),
    ),
    clusters.MemberObjectApplied(
        name="member1",
        manifest=msgspec.Raw(
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"local","namespace":"default"}}'
        ),
    ),
    clusters.MemberObjectDeleted(name="member1", object=_TEMPLATE, orphans=True),
    clusters.MemberPodDeleted(name="member1", owner=_TEMPLATE, slot=1),
)
_HEALTH: Final[tuple[shapes.Event, ...]] = (
    health.WorkloadReported(
        cluster="member1",
        key=_KEY,
        term=2,
        step=7,
        replicas=3,
        updated=3,
        ready=2,
        available=2,
        healthy=False,
        fault="OverridePolicy default/eu: plaintext: operation 0: there is no /spec/size",
        values={"{.jobStatus.jobID}": "a1"},
        generation=3,
        observed_generation=2,
        status='{"phase":"Running"}',
    ),
    health.WorkloadGone(cluster="member1", key=_KEY, term=2, step=8),
)
_DECISIONS: Final[tuple[shapes.Event, ...]] = (
    decisions.StepTaken(
        shard=3,
        number=7,
        term=2,
        time_ms=AT_MS,
        release="0.1.0",
        ends={"clusters": 4, "specs": 9},
        processed=1,
        outputs=2,
        inputs_digest=_STEP_DIGEST,
        outputs_digest=_STEP_DIGEST,
        previous=_STEP_DIGEST,
        declared="dq83vASNFZ4mrze8BwEi3f5mq",
    ),
    decisions.BindingDeclared(
        key=_KEY,
        template=_TEMPLATE,
        uid=_UID,
        generation=1,
        offset=8,
        digest=_DIGEST,
        replicas=3,
        requests={"cpu": "10m"},
    ),
    decisions.BindingClaimed(
        key=_KEY,
        policy=_POLICY,
        permanent_id=_UID,
        version=5,
        placement=_PLACEMENT,
        suspended=True,
        suspended_on=("member2",),
        conflict_resolution=enums.ConflictResolution.OVERWRITE,
        preserve_on_deletion=True,
        purge_mode="Gracefully",
        failover=decisions.ApplicationFailover(
            toleration_seconds=30, purge_mode="Gracefully", grace_period_seconds=60, preserved=_STATE
        ),
        propagate_deps=True,
        preserved=_STATE,
        deletes_last_copy=True,
        schedule_priority=decisions.SchedulePriority(source="KubePriorityClass", name="urgent"),
        preempted=_POLICY,
        scheduler="volcano",
        resumed=True,
    ),
    decisions.BindingSuspended(key=_KEY, scheduling=True, dispatching=True),
    decisions.TemplateMarked(key=_KEY, policy=_POLICY, permanent_id=_UID, preempted=_POLICY),
    decisions.ClaimRefused(
        key=_KEY, template=_TEMPLATE, uid=_UID, policy=_POLICY, fault="PriorityClass urgent does not exist"
    ),
    decisions.BindingReleased(key=_KEY, policy=_POLICY, reason="PolicyDeleted"),
    decisions.BindingWithdrawn(key=_KEY, reason="TemplateDeleted"),
    decisions.PriorityResolved(
        key=_KEY,
        priority=-5,
        preemption_policy=enums.PreemptionPolicy.NEVER,
        class_name="urgent",
        fault="PriorityClass urgent does not exist",
    ),
    decisions.CapacityWanted(
        key=_KEY,
        number=7,
        priority=1_000,
        missing=2,
        clusters=("member1", "member2"),
        again_ms=AT_MS,
        attempt=2,
    ),
    decisions.PreemptionDecided(key=_KEY, number=7, again_ms=AT_MS, victims=(_OCCUPANT,), reason="NotEnough"),
    decisions.ScheduleDecided(
        failed=_FAILED,
        key=_KEY,
        generation=1,
        trigger="SpecChanged",
        mode="Steady",
        clusters=(shapes.TargetCluster(name="member1", replicas=3),),
        affinity="primary",
        available={"member1": 30},
        excluded={"TaintUntolerated": 2},
    ),
    decisions.ScheduleFailed(
        failed=_FAILED,
        key=_KEY,
        generation=1,
        trigger="SpecChanged",
        mode="Steady",
        reason="NoClusterFit",
        message="0/3 clusters are available",
        emptied=True,
        retried=True,
        attempts=2,
        retry_at_ms=AT_MS,
        excluded={"TaintUntolerated": 3},
    ),
    decisions.BindingDispatched(
        key=_KEY,
        digest=_DIGEST,
        works=(
            decisions.DispatchedWork(
                cluster="member1",
                state="applied",
                replicas=3,
                overrides=(_OVERRIDE,),
                labels={"example.com/job": "a1"},
                reading=_READING,
                overwrites=True,
                completions=3,
            ),
        ),
    ),
    decisions.RescheduleTriggered(key=_KEY, rebalancer="demo", uid=_UID, generation=1, at_ms=AT_MS),
    decisions.EvictionStarted(
        key=_KEY,
        cluster="member1",
        reason="TaintUntolerated",
        producer="TaintManager",
        purge_mode="Gracefully",
        created_ms=AT_MS,
        replicas=3,
        grace_period_seconds=60,
        suppress_deletion=True,
        labels={"example.com/job": "a1"},
        clusters_before=("member1",),
        not_preserved={"example.com/savepoint": "nothing was reported at .savepoint"},
        by=_OCCUPANT.key,
        held=True,
    ),
    decisions.EvictionFinished(key=_KEY, cluster="member1", reason="Replaced"),
    cluster_decisions.ClusterSilenced(name="member1", heard_ms=AT_MS, grace_seconds=40),
    cluster_decisions.ClusterJudged(
        name="member1",
        status="False",
        version=5,
        added=(clusters.Taint(key="not-ready", effect="NoExecute"),),
        removed=(clusters.Taint(key="not-ready", effect="NoSchedule"),),
    ),
    cluster_decisions.ClusterVacated(name="member1", uid=_UID),
    rebalance_decisions.RebalanceStarted(
        name="demo", uid=_UID, generation=1, at_ms=AT_MS, asked=(_TEMPLATE,), dropped=(_TEMPLATE,)
    ),
    rebalance_decisions.WorkloadRebalanced(
        name="demo",
        uid=_UID,
        generation=1,
        workload=_TEMPLATE,
        result="Failed",
        reason="ReferencedBindingNotFound",
    ),
    rebalance_decisions.RebalanceFinished(name="demo", uid=_UID, generation=1, finish_ms=AT_MS),
    rebalance_decisions.RebalancerExpired(name="demo", uid=_UID, generation=1),
    decisions.StatusAggregated(
        key=_KEY,
        members=(
            decisions.MemberStatus(
                cluster="member1",
                applied=True,
                health=enums.Health.HEALTHY,
                replicas=3,
                updated=3,
                ready=3,
                available=3,
                message="why not",
                values={"{.jobStatus.jobID}": "a1"},
                generation=3,
                observed_generation=2,
                template_generation=4,
            ),
        ),
        observed_generation=1,
        fully_applied=True,
        fields={".jobStatus.restarts": 3, ".jobStatus.state": "RUNNING"},
    ),
    decisions.DependenciesDistributed(
        key=_KEY, dependencies=(_DEPENDENCY,), clusters=_PAIR, overwrites=True, preserves=True
    ),
    decisions.BindingRequired(
        key=_KEY,
        required_by=(
            decisions.RequiredBy(
                namespace="default",
                name="demo-deployment",
                clusters=("member1", "member2"),
                overwrites=True,
                preserves=True,
            ),
        ),
    ),
)
_LINKS: Final[tuple[shapes.Event, ...]] = (
    links.RescheduleRequested(
        rebalancer="demo", uid=_UID, generation=1, at_ms=AT_MS, key=_KEY, workload=_TEMPLATE
    ),
    links.RescheduleAnswered(
        rebalancer="demo",
        uid=_UID,
        generation=1,
        workload=_TEMPLATE,
        result="Failed",
        reason="ReferencedBindingNotFound",
    ),
    links.DependencyNeeded(
        dependency=_DEPENDENCY,
        by=_KEY,
        number=7,
        clusters=("member1", "member2"),
        overwrites=True,
        preserves=True,
    ),
    links.DependencyDropped(dependency=_DEPENDENCY, by=_KEY, number=8, preserved=True),
    links.CapacityRequested(shard=3, key=_KEY, number=7, priority=1_000, clusters=("member1", "member2")),
    links.CapacityOffered(key=_KEY, number=7, shard=3, occupants=(_OCCUPANT,)),
    links.PreemptionRequested(
        key=_OCCUPANT.key, cluster="member1", replicas=3, by=_KEY, priority=1_000, until_ms=AT_MS
    ),
    links.ClusterCleared(cluster="member1", uid=_UID, shard=3),
)
_WORKS: Final[tuple[shapes.Event, ...]] = (
    works.WorkApplied(
        cluster="member1",
        key=_KEY,
        template=_TEMPLATE,
        shard=3,
        offset=8,
        digest=_DIGEST,
        term=2,
        step=7,
        replicas=3,
        overrides=(_OVERRIDE,),
        labels={"example.com/job": "a1"},
        reading=_READING,
        overwrites=True,
        completions=3,
    ),
    works.WorkRemoved(cluster="member1", key=_KEY, term=2, step=8, preserved=True),
    works.WorkSuspended(cluster="member1", key=_KEY, term=2, step=9),
)
_OTHERS: Final[tuple[shapes.Event, ...]] = (
    *observation_samples.SAMPLES,
    *quota_samples.SAMPLES,
    rejections.InputRejected(
        verdict="late",
        reason="written for version 1, but version 2 stands",
        field="expects",
        topic="specs",
        partition=3,
        offset=8,
        key=_KEY,
        source="/pipelines/shop",
        event_id="42",
        content="{}",
    ),
)
SAMPLES: Final[dict[str, shapes.Event]] = {
    types.BY_STRUCT[type(data)].type: data
    for data in (*_SPECS, *_POLICIES, *_CLUSTERS, *_HEALTH, *_DECISIONS, *_LINKS, *_WORKS, *_OTHERS)
}
"""By CloudEvents type."""


def place_of(data: shapes.Event) -> tuple[str, int]:
    """Return key and partition of a sample."""
    topic = topics.TOPICS[types.BY_STRUCT[type(data)].topic]
    match data:
        case works.WorkApplied() | works.WorkRemoved() | works.WorkSuspended():
            key = data.cluster
        case rejections.InputRejected():
            key = data.topic
        case _ if topic.name == topics.OBSERVATIONS:
            key = data.record_key
        case _ if topic.name == topics.DECISIONS:
            shard = keys.shard_of(_KEY)
            return str(shard), shard
        case _:
            manifest = getattr(data, "manifest", None)
            key = verdicts.key_of(data, read(manifest) if isinstance(manifest, msgspec.Raw) else None)
    return key, partitioning.partition_of(key, topic.partitions)


def envelope_of(event_type: str) -> Envelope:
    """Return an envelope with a value in every attribute of the first release."""
    trace = hashlib.sha256(event_type.encode()).hexdigest()
    return Envelope(
        id=f"sample-{event_type}",
        source="/samples",
        type=event_type,
        subject=_KEY,
        time="2024-05-25T09:49:51.120Z",
        dataschema=f"urn:reballast:{event_type}",
        traceparent=f"00-{trace[:32]}-{trace[32:48]}-01",
        correlationid="story-1",
        causationid="specs/3/8",
    )
