"""Queries: objects as the guide shows them, pages, filters, timelines."""

import msgspec
import pytest

from events import clusters, decisions, ids, keys, rebalance_decisions, rejections, shapes, specs, works
from events.records import Record
from projections import query
from projections.query import Filter
from tests.builders.inputs import deployment, rebalancer, ref
from tests.projections.asking import views_of
from tests.projections.logs import RecordBuilder
from tests.projections.stories import PLACEMENT, POLICY, claimed, decided, declared, status

KEY = keys.binding_key("Deployment", "default", "foo")


@pytest.fixture
def builder() -> RecordBuilder:
    return RecordBuilder()


async def test_binding_is_shown_as_a_resource_binding(builder: RecordBuilder) -> None:
    claim = {"nodeSelector": msgspec.Raw(b'{"disk":"ssd"}')}
    declaration = msgspec.structs.replace(declared(KEY, "foo", 3), node_claim=claim)
    ask = await views_of(
        [
            builder.input(deployment("foo", 3)),
            *builder.decide(declaration, claimed(KEY), decided(KEY, member1=2, member2=1)),
        ]
    )
    binding = await ask(lambda rows: query.get_binding(rows, KEY))

    assert binding["kind"] == "ResourceBinding"
    assert binding["metadata"]["name"] == "foo-deployment"
    assert binding["metadata"]["generation"] == 3, "declared, claimed, scheduled"
    assert binding["spec"]["clusters"] == [
        {"name": "member1", "replicas": 2},
        {"name": "member2", "replicas": 1},
    ]
    assert binding["spec"]["placement"]["clusterAffinity"]["clusterNames"] == [
        "member1",
        "member2",
        "member3",
    ]
    assert binding["spec"]["replicaRequirements"] == {
        "nodeClaim": {"nodeSelector": {"disk": "ssd"}},
        "resourceRequest": {"cpu": "100m"},
        "namespace": "default",
    }
    (scheduled,) = binding["status"]["conditions"]
    assert scheduled["status"] == "True"
    assert scheduled["message"] == "Binding has been scheduled successfully."
    assert binding["status"]["schedulerObservedGeneration"] == 3
    assert binding["status"]["lastScheduledTime"] == "2024-05-25T09:49:52Z"


async def test_binding_without_namespace_or_replicas_omits_them(builder: RecordBuilder) -> None:
    key = keys.binding_key("ClusterRole", "", "reader")
    role = shapes.WorkloadRef(api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", name="reader")
    binding_of = decisions.BindingDeclared(
        key=key, template=role, uid="u1", generation=1, offset=0, digest="d1"
    )
    ask = await views_of(builder.decide(binding_of, decided(key, member1=0)))
    binding = await ask(lambda rows: query.get_binding(rows, key))

    assert binding["kind"] == "ClusterResourceBinding"
    assert "namespace" not in binding["metadata"]
    assert binding["metadata"]["finalizers"] == ["karmada.io/cluster-resource-binding-controller"]
    assert "replicas" not in binding["spec"]
    assert binding["spec"]["clusters"] == [{"name": "member1"}]


async def test_binding_names_the_groups_of_its_workload(builder: RecordBuilder) -> None:
    terms = {"affinity": {"groupByLabelKey": "app"}, "antiAffinity": {"groupByLabelKey": "track"}}
    claim = claimed(KEY, {**PLACEMENT, "workloadAffinity": terms})
    log = [
        builder.input(deployment("foo", labels={"app": "shop", "team": "a"})),
        *builder.decide(declared(KEY, "foo", 1), claim),
    ]

    async def groups() -> object:
        ask = await views_of(log)
        shown = await ask(lambda rows: query.get_binding(rows, KEY))
        return shown["spec"].get("workloadAffinityGroups")

    assert await groups() == {"affinityGroup": "app=shop"}
    log.append(builder.input(deployment("foo", labels={"track": "stable"})))
    log += builder.decide(declared(KEY, "foo", 1))
    assert await groups() == {"antiAffinityGroup": "track=stable"}
    log += builder.decide(claimed(KEY))
    assert await groups() is None


async def test_binding_with_an_unreadable_workload_affinity_has_no_groups(builder: RecordBuilder) -> None:
    claim = claimed(KEY, {**PLACEMENT, "workloadAffinity": {"affinity": 5}})
    ask = await views_of(builder.decide(declared(KEY, "foo", 1), claim))
    binding = await ask(lambda rows: query.get_binding(rows, KEY))
    assert "workloadAffinityGroups" not in binding["spec"]
    assert binding["spec"]["placement"]["workloadAffinity"] == {"affinity": 5}


async def test_eviction_moves_a_cluster_into_a_task_until_it_ends(builder: RecordBuilder) -> None:
    started = decisions.EvictionStarted(
        key=KEY,
        cluster="member1",
        reason="TaintUntolerated",
        producer="TaintManager",
        purge_mode="Gracefully",
        created_ms=builder.at_ms,
        replicas=2,
    )
    opening = [
        *builder.decide(declared(KEY, "foo", 3), decided(KEY, member1=2, member2=1)),
        *builder.decide(started),
    ]
    over = builder.decide(decisions.EvictionFinished(key=KEY, cluster="member1", reason="Healthy"))

    evicting = await (await views_of(opening))(lambda rows: query.get_binding(rows, KEY))
    done = await (await views_of([*opening, *over]))(lambda rows: query.get_binding(rows, KEY))

    assert evicting["spec"]["clusters"] == [{"name": "member2", "replicas": 1}]
    (task,) = evicting["spec"]["gracefulEvictionTasks"]
    assert (task["fromCluster"], task["replicas"], task["reason"]) == ("member1", 2, "TaintUntolerated")
    assert "gracefulEvictionTasks" not in done["spec"]
    assert done["metadata"]["generation"] == evicting["metadata"]["generation"]


@pytest.mark.parametrize(("emptied", "left"), [(True, 0), (False, 1)])
async def test_failure_has_a_reason_and_clears_the_clusters_only_if_emptied(
    builder: RecordBuilder, *, emptied: bool, left: int
) -> None:
    failed = decisions.ScheduleFailed(
        key=KEY,
        generation=2,
        trigger="ReplicasChanged",
        mode="Steady",
        reason="NoClusterFit",
        message="0/3 clusters are available.",
        emptied=emptied,
    )
    ask = await views_of(
        [*builder.decide(declared(KEY, "foo", 3), decided(KEY, member1=3)), *builder.decide(failed)]
    )
    binding = await ask(lambda rows: query.get_binding(rows, KEY))

    assert len(binding["spec"].get("clusters", [])) == left
    (scheduled,) = binding["status"]["conditions"]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "NoClusterFit")


async def test_trigger_time_never_decreases(builder: RecordBuilder) -> None:
    def trigger(at_ms: int) -> decisions.RescheduleTriggered:
        return decisions.RescheduleTriggered(key=KEY, rebalancer="demo", uid="u", generation=1, at_ms=at_ms)

    later, earlier = trigger(builder.at_ms), trigger(builder.at_ms - 60_000)
    ask = await views_of(builder.decide(declared(KEY, "foo", 3), later, earlier))
    binding = await ask(lambda rows: query.get_binding(rows, KEY))

    assert binding["spec"]["rescheduleTriggeredAt"] == "2024-05-25T09:49:51Z"


async def test_template_shows_its_claim_and_the_sums_of_its_members(builder: RecordBuilder) -> None:
    foo = builder.input(deployment("foo", 3, labels={"app": "foo"}))
    uid = ids.object_uid("/tests", "input-1", KEY)
    binding_of = msgspec.structs.replace(declared(KEY, "foo", 3), uid=uid)
    ask = await views_of([foo, *builder.decide(binding_of, claimed(KEY), status(KEY, member1=2, member2=1))])
    shown = await ask(lambda rows: query.get_object(rows, KEY))

    assert shown["metadata"]["resourceVersion"] == "5", (
        "the number of the last record that changed the object"
    )
    assert shown["metadata"]["uid"] == uid
    assert shown["metadata"]["labels"]["app"] == "foo"
    assert shown["metadata"]["annotations"]["propagationpolicy.karmada.io/name"] == "everything"
    assert shown["status"] == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }


async def test_finished_rebalancer_is_shown_as_in_the_guide(builder: RecordBuilder) -> None:
    """The batch of the guide: sorted by apiVersion, kind, namespace, name; one workload has no binding."""
    role = shapes.WorkloadRef(
        api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", name="demo-role"
    )
    config = shapes.WorkloadRef(api_version="v1", kind="ConfigMap", name="demo-config", namespace="default")
    deploy = ref("demo-deploy")
    workloads = (config, role, deploy)
    written = builder.input(rebalancer("demo", *workloads))
    uid = ids.object_uid("/tests", "input-1", written.key)
    started = rebalance_decisions.RebalanceStarted(
        name="demo", uid=uid, generation=1, at_ms=builder.at_ms, asked=workloads
    )
    results = [
        rebalance_decisions.WorkloadRebalanced(
            name="demo", uid=uid, generation=1, workload=ref, result="Successful"
        )
        for ref in (deploy, role)
    ]
    failed = rebalance_decisions.WorkloadRebalanced(
        name="demo",
        uid=uid,
        generation=1,
        workload=config,
        result="Failed",
        reason="ReferencedBindingNotFound",
    )
    finished = rebalance_decisions.RebalanceFinished(
        name="demo", uid=uid, generation=1, finish_ms=builder.at_ms
    )

    pending = await (await views_of([written, *builder.decide(started)]))(
        lambda rows: query.get_rebalancer(rows, "demo")
    )
    ask = await views_of([written, *RecordBuilder().decide(started, *results, failed, finished)])
    done = await ask(lambda rows: query.get_rebalancer(rows, "demo"))

    assert "finishTime" not in pending["status"]
    assert [set(workload) for workload in pending["status"]["observedWorkloads"]] == [{"workload"}] * 3
    assert done["metadata"]["creationTimestamp"] == "2024-05-25T09:49:52Z"
    assert done["status"] == {
        "finishTime": "2024-05-25T09:49:52Z",
        "observedGeneration": 1,
        "observedWorkloads": [
            {"result": "Successful", "workload": _shown(deploy)},
            {"result": "Successful", "workload": _shown(role)},
            {"reason": "ReferencedBindingNotFound", "result": "Failed", "workload": _shown(config)},
        ],
    }


def _shown(workload: shapes.WorkloadRef) -> dict[str, str]:
    known = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": workload.name,
        "namespace": workload.namespace,
    }
    return {name: text for name, text in known.items() if text}


async def test_deleted_rebalancer_is_removed_and_a_new_one_starts_empty(builder: RecordBuilder) -> None:
    first = builder.input(rebalancer("demo", ref("foo")))
    uid = ids.object_uid("/tests", "input-1", first.key)
    done = rebalance_decisions.RebalanceFinished(name="demo", uid=uid, generation=1, finish_ms=builder.at_ms)
    deletion = builder.input(specs.RebalancerDeleted(name="demo"))
    story = [first, *builder.decide(done), deletion, *builder.decide(done)]

    missing = await (await views_of(story))(lambda rows: query.get_rebalancer(rows, "demo"))
    again = builder.input(rebalancer("demo", ref("foo")))
    fresh = await (await views_of([*story, again]))(lambda rows: query.get_rebalancer(rows, "demo"))

    assert missing is None
    assert fresh["status"] == {}
    assert fresh["metadata"]["uid"] != uid


async def test_cluster_shows_its_spec_and_reports(builder: RecordBuilder) -> None:
    taint = clusters.Taint(key="maintenance", effect="NoExecute")
    ask = await views_of(
        [
            builder.input(clusters.ClusterJoined(name="member1", region="eu", zones=("a", "b"))),
            builder.input(clusters.CapacityReported(name="member1", allocatable={"cpu": "8", "pods": "110"})),
            builder.input(clusters.ClusterTainted(name="member1", taint=taint)),
            builder.input(clusters.ClusterTainted(name="member1", taint=taint)),
            builder.input(clusters.ClusterHealthChanged(name="member1", ready=True, reason="ClusterReady")),
            builder.input(clusters.ClusterLabelled(name="member1", labels={"tier": "gold"})),
        ]
    )
    cluster = await ask(lambda rows: query.get_cluster(rows, "member1"))
    golden = await ask(
        lambda rows: query.list_clusters(rows, Filter(labels=lambda labels: labels.get("tier") == "gold"))
    )
    silver = await ask(
        lambda rows: query.list_clusters(rows, Filter(labels=lambda labels: labels.get("tier") == "silver"))
    )

    assert cluster["metadata"]["labels"] == {"tier": "gold"}
    assert cluster["spec"]["zones"] == ["a", "b"]
    assert cluster["spec"]["taints"] == [
        {"key": "maintenance", "effect": "NoExecute", "timeAdded": "2024-05-25T09:49:54Z"}
    ], "said twice, it counts from the first time"
    assert cluster["status"]["resourceSummary"]["allocatable"]["cpu"] == "8"
    assert cluster["status"]["conditions"][0]["status"] == "True"
    assert [len(page["items"]) for page in (golden, silver)] == [1, 0]


async def test_pages_follow_without_gap_or_repetition(builder: RecordBuilder) -> None:
    names = [f"app-{at}" for at in range(25)]
    batch = [builder.input(deployment(name, 1)) for name in names]
    for name in names:
        batch += builder.decide(declared(keys.binding_key("Deployment", "default", name), name, 1))
    ask = await views_of([*batch, builder.input(POLICY)])

    for listing, kind in ((query.list_bindings, "ResourceBinding"), (query.list_objects, "Deployment")):
        seen: list[str] = []
        after = ""
        while True:
            page = await ask(lambda rows, after=after, ask=listing: ask(rows, limit=7, after=after))
            seen += [item["metadata"]["name"] for item in page["items"] if item["kind"] == kind]
            if not (after := page["after"]):
                break
        assert len(seen) == len(set(seen)) == 25


async def test_bindings_are_filtered_by_namespace_cluster_and_label(builder: RecordBuilder) -> None:
    batch: list[Record] = []
    for name, cluster in (("a", "member1"), ("b", "member2"), ("c", "member12")):
        key = keys.binding_key("Deployment", "default", name)
        batch += [
            builder.input(deployment(name, labels={"app": name})),
            *builder.decide(declared(key, name, 1), decided(key, **{cluster: 1})),
        ]
    ask = await views_of(batch)

    async def names(selection: Filter) -> list[str]:
        page = await ask(lambda rows: query.list_bindings(rows, selection))
        return [item["spec"]["resource"]["name"] for item in page["items"]]

    assert await names(Filter(namespace="default")) == ["a", "b", "c"]
    assert await names(Filter(namespace="defaul")) == []
    assert await names(Filter(cluster="member1")) == ["a"]
    assert await names(Filter(labels=lambda labels: labels.get("app") == "b")) == ["b"]
    assert await names(Filter(kind="Job")) == []


async def test_works_are_listed_by_cluster_and_by_binding(builder: RecordBuilder) -> None:
    told_works = [
        works.WorkApplied(
            cluster=name,
            key=KEY,
            template=ref("foo"),
            shard=keys.shard_of(KEY),
            offset=0,
            digest="d1",
            term=1,
            step=1,
            replicas=2,
        )
        for name in ("member1", "member2")
    ]
    removed = works.WorkRemoved(cluster="member2", key=KEY, term=1, step=2)
    ask = await views_of(
        [
            *builder.decide(declared(KEY, "foo", 4), *told_works),
            *builder.decide(decided(KEY, member1=4), removed),
        ]
    )

    of_binding = await ask(lambda rows: query.list_works(rows, key=KEY))
    of_cluster = await ask(lambda rows: query.list_works(rows, "member2"))

    assert [(work["cluster"], work["replicas"]) for work in of_binding["items"]] == [("member1", 2)]
    assert of_cluster["items"] == []


async def test_timeline_lists_the_records_of_a_key(builder: RecordBuilder) -> None:
    foo, other = builder.input(deployment("foo", 1)), builder.input(deployment("other", 1))
    ask = await views_of(
        [foo, other, *builder.decide(declared(KEY, "foo", 1)), builder.input(deployment("foo", 2))]
    )

    assert await ask(lambda rows: query.timeline(rows, KEY)) == [1, 4, 5]
    assert await ask(lambda rows: query.timeline(rows, KEY, after=1, limit=1)) == [4]
    assert await ask(lambda rows: query.newest(rows, KEY, limit=2)) == [4, 5]
    assert await ask(lambda rows: query.timeline_length(rows, KEY)) == 3
    assert await ask(lambda rows: query.timeline_length(rows, KEY, before=5)) == 2


async def test_rejections_are_listed_newest_first(builder: RecordBuilder) -> None:
    refused = [
        rejections.InputRejected(verdict="late", reason=f"reason {at}", topic="specs", partition=3, key=KEY)
        for at in range(3)
    ]
    ask = await views_of(builder.step(0, refused))
    page = await ask(lambda rows: query.list_rejections(rows, limit=2))
    rest = await ask(lambda rows: query.list_rejections(rows, after=page["after"]))

    assert [item["reason"] for item in page["items"]] == ["reason 2", "reason 1"]
    assert [item["reason"] for item in rest["items"]] == ["reason 0"]
    assert await ask(lambda rows: query.timeline(rows, KEY)) == [2, 3, 4]


async def test_inputs_without_effect_are_counted(builder: RecordBuilder) -> None:
    foo = builder.input(deployment("foo", 1))
    late = builder.input(specs.TemplateDeleted(template=ref("foo"), expects=7))
    step = builder.decide(declared(KEY, "foo", 1))
    ask = await views_of([foo, foo, late, *step, *step])
    counts = await ask(query.counts)

    assert counts["inputs.repeated"] == counts["inputs.late"] == 1
    assert counts["decisions.ignored"] == 2
    assert counts["decisions.io.reballast.binding-declared"] == 1
