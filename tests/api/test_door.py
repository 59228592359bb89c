"""The door by example: what is sent, what the log then holds, and what is answered."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from engine.gateway import door_clusters, door_wishes
from engine.gateway.door import cluster_target
from engine.gateway.door_results import Result
from events import clusters, envelope, partitioning, policies, records, rejections, specs
from events import topics as names
from events.codec import encode
from tests.api.doors import House, manifest_of, open_house

DEPLOYMENT = b"""
apiVersion: apps/v1
kind: Deployment
metadata:
  name: foo
  labels: {app: test}
spec:
  replicas: 3
  template: {spec: {containers: [{image: nginx, name: foo}]}}
"""
POLICY = b"""
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: default-pp}
spec:
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: foo}
"""
FOO = door_wishes.Target(api_version="apps/v1", kind="Deployment", namespace="default", name="foo")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


def said(results: list[Result]) -> list[str]:
    """What kubectl would print."""
    return [
        f"{result.resource}/{result.name} {result.action}" if result.action else result.problems[0].reason
        for result in results
    ]


async def test_objects_are_created_then_unchanged_then_configured(house: House) -> None:
    both = DEPLOYMENT + b"---" + POLICY

    assert said(await house.door.apply(both)) == [
        "deployment.apps/foo created",
        "propagationpolicy.policy.karmada.io/default-pp created",
    ]
    assert said(await house.door.apply(both)) == [
        "deployment.apps/foo unchanged",
        "propagationpolicy.policy.karmada.io/default-pp unchanged",
    ]
    assert said(await house.door.apply(DEPLOYMENT.replace(b"replicas: 3", b"replicas: 4"))) == [
        "deployment.apps/foo configured"
    ]
    created, changed = await house.events(names.SPECS)
    assert isinstance(created, specs.TemplateApplied)
    assert isinstance(changed, specs.TemplateApplied)
    assert (created.expects, changed.expects) == (0, 1)
    assert msgspec.json.decode(changed.manifest)["spec"]["replicas"] == 4


async def test_the_answer_holds_the_object_as_the_views_show_it(house: House) -> None:
    (result,) = await house.door.apply(DEPLOYMENT)

    assert result.object is not None
    metadata = msgspec.json.decode(result.object)["metadata"]
    assert metadata["resourceVersion"] == str(result.resource_version) == "1"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2024-05-25T09:49:51Z"


async def test_a_policy_gets_what_the_api_fills_in(house: House) -> None:
    await house.door.apply(POLICY)

    (event,) = await house.events(names.POLICIES)
    spec = manifest_of(event)["spec"]
    assert isinstance(spec, dict)
    assert (spec["priority"], spec["preemption"], spec["conflictResolution"]) == (0, "Never", "Abort")
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["resourceSelectors"][0]["namespace"] == "default"


async def test_an_autoscaler_of_v1_is_kept_as_v2_through_every_door(house: House) -> None:
    spec = b"spec: {maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: foo}, targetCPUUtilizationPercentage: 70}"
    first = b"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: foo}\n" + spec
    assert said(await house.door.apply(first)) == ["horizontalpodautoscaler.autoscaling/foo created"]
    assert said(await house.door.apply(first)) == ["horizontalpodautoscaler.autoscaling/foo unchanged"]

    manifest = manifest_of((await house.events(names.SPECS))[-1])
    assert manifest["apiVersion"] == "autoscaling/v2"
    assert "averageUtilization': 70" in str(manifest["spec"])
    assert said(await house.door.delete_content(first)) == ["horizontalpodautoscaler.autoscaling/foo deleted"]


async def test_a_field_left_out_of_the_file_goes_and_one_set_by_others_stays(house: House) -> None:
    suspended = POLICY.replace(b"spec:\n", b"spec:\n  suspension: {dispatching: true}\n")
    without_replicas = DEPLOYMENT.replace(b"  replicas: 3\n", b"")
    await house.door.apply(suspended + b"---" + without_replicas)
    await house.door.scale(FOO, 7)
    await house.door.label(FOO, {"team": "a"})

    assert said(await house.door.apply(POLICY + b"---" + without_replicas)) == [
        "propagationpolicy.policy.karmada.io/default-pp configured",
        "deployment.apps/foo unchanged",
    ]
    assert "suspension" not in str(manifest_of((await house.events(names.POLICIES))[-1])["spec"])
    last = manifest_of((await house.events(names.SPECS))[-1])
    assert last["spec"]["replicas"] == 7  # type: ignore[index]
    assert last["metadata"]["labels"] == {"app": "test", "team": "a"}  # type: ignore[index]


async def test_good_documents_are_applied_beside_bad_ones_which_leave_a_rejection_each(house: House) -> None:
    bad = b"""
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bad}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    spreadConstraints:
      - {spreadByField: region, minGroups: 2}
"""
    results = await house.door.apply(bad + b"---\na: [\n---" + DEPLOYMENT, file="app.yaml")

    assert [bool(result.problems) for result in results] == [True, True, False]
    problem = results[0].problems[0]
    assert (problem.file, problem.document, problem.line) == ("app.yaml", 1, 8)
    assert problem.field == "spec.placement.spreadConstraints"
    assert problem.remedy == "add a constraint with spreadByField: cluster"
    assert results[1].problems[0].document == 2
    assert [type(event) for event in await house.written()] == [specs.TemplateApplied]
    first, second = await house.events(names.REJECTIONS)
    assert isinstance(first, rejections.InputRejected)
    assert (first.verdict, first.topic, first.key) == (
        "refused",
        names.POLICIES,
        "propagationpolicy:default/bad",
    )
    assert first.field == "spec.placement.spreadConstraints"
    assert "spreadByField: region" in first.content
    assert isinstance(second, rejections.InputRejected)


async def test_unknown_fields_are_refused_or_left_out_and_case_is_forgiven(house: House) -> None:
    odd = POLICY.replace(
        b"  placement:\n", b"  plcement: 1\n  placement:\n    clusterTolerations: [TOLERATION]\n"
    )
    odd = odd.replace(b"TOLERATION", b"{key: dedicated, value: special-user, Effect: NoSchedule}")

    (strict,) = await house.door.apply(odd)
    assert [problem.field for problem in strict.problems] == ["spec.plcement"]
    (warned,) = await house.door.apply(odd, validation="warn")

    assert warned.action == "created"
    assert warned.warnings == (
        'unknown field "spec.plcement" was left out',
        'field "spec.placement.clusterTolerations[0].Effect" was read as "effect"',
    )
    (event,) = await house.events(names.POLICIES)
    assert "'effect': 'NoSchedule'" in str(manifest_of(event))


async def test_an_object_needs_its_namespace_which_may_stand_before_it_in_the_same_file(house: House) -> None:
    inside = DEPLOYMENT.replace(b"name: foo\n", b"name: foo\n  namespace: shop\n", 1)
    namespace = b"\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"

    (refused,) = await house.door.apply(inside)
    assert refused.problems[0].reason == 'namespace "shop" not found'
    results = await house.door.apply(namespace + inside)

    assert said(results) == ["namespace/shop created", "deployment.apps/foo created"]
    (gone,) = [await house.door.delete(await _target(house, "ns", "", "shop"))]
    assert gone.action == "deleted"
    kinds = [type(event) for event in await house.written()]
    assert kinds == [
        specs.TemplateApplied,
        specs.TemplateDeleted,
        policies.NamespaceApplied,
        policies.NamespaceDeleted,
    ]


async def test_the_default_namespace_stays(house: House) -> None:
    result = await house.door.delete(await _target(house, "namespace", "", "default"))

    assert result.problems


async def test_two_documents_for_one_object_are_applied_one_after_the_other(house: House) -> None:
    results = await house.door.apply(DEPLOYMENT + b"---" + DEPLOYMENT.replace(b"replicas: 3", b"replicas: 5"))

    assert said(results) == ["deployment.apps/foo created", "deployment.apps/foo configured"]
    assert [event.expects for event in await house.events(names.SPECS)] == [0, 1]  # type: ignore[attr-defined]


async def test_what_somebody_wrote_meanwhile_is_kept_by_a_write_that_is_computed_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.door.apply(DEPLOYMENT)
    append = house.log.append
    raced: list[str] = []

    async def faster(batch: list[records.Record]) -> list[records.StoredRecord]:
        if not raced:
            raced.append("once")
            other = DEPLOYMENT_OF_ANOTHER
            key = "default/foo-deployment"
            head = envelope.Envelope(id="other", source="/other", type="t", time="2024-05-25T09:50:00Z")
            place = partitioning.partition_of(key, names.SHARDS)
            await append([encode(specs.TemplateApplied(manifest=other), head, partition=place, key=key)])
        return await append(batch)

    monkeypatch.setattr(house.log, "append", faster)
    result = await house.door.scale(FOO, 9)

    assert result.action == "scaled"
    last = manifest_of((await house.events(names.SPECS))[-1])
    assert last["spec"] == {"replicas": 9, "paused": True}


DEPLOYMENT_OF_ANOTHER = msgspec.Raw(
    b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"foo","namespace":"default"},'
    b'"spec":{"paused":true,"replicas":1}}'
)


async def test_a_stale_resource_version_is_a_conflict(house: House) -> None:
    await house.door.apply(DEPLOYMENT)
    await house.door.scale(FOO, 4)

    result = await house.door.patch(FOO, {"spec": {"replicas": 5}}, seen=1)
    (applied,) = await house.door.apply(
        DEPLOYMENT.replace(b"  name: foo\n", b"  name: foo\n  resourceVersion: '1'\n", 1)
    )

    assert [result.problems[0].verdict, applied.problems[0].verdict] == ["late", "late"]


async def test_a_patch_does_not_rename_or_move_an_object(house: House) -> None:
    await house.door.apply(DEPLOYMENT)
    patches: list[dict[str, object]] = [
        {"metadata": {"name": "bar"}},
        {"metadata": {"namespace": "shop"}},
        {"kind": "StatefulSet"},
        {"apiVersion": "apps/v2"},
        {"metadata": None},
        {"kind": 3},
    ]

    results = [await house.door.patch(FOO, patch) for patch in patches]

    assert all(result.problems for result in results)
    assert len(await house.written()) == 1


async def test_what_the_fold_refuses_is_never_called_done(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = house.log.append

    async def spoilt(batch: list[records.Record]) -> list[records.StoredRecord]:
        other = [msgspec.structs.replace(record, value=b"{}") for record in batch]
        return await append(other)

    monkeypatch.setattr(house.log, "append", spoilt)
    (result,) = await house.door.apply(DEPLOYMENT)

    assert result.problems[0].verdict == "late"


async def test_scaling_knows_custom_kinds_by_their_interpreter(house: House) -> None:
    kafka = b"apiVersion: example.io/v1\nkind: Kafka\nmetadata: {name: k}\nspec: {size: 1}\n"
    interpreter = b"""
apiVersion: config.reballast.io/v1alpha1
kind: ReplicaInterpreter
metadata: {name: kafkas}
spec: {target: {apiVersion: example.io/v1, kind: Kafka}, replicasPath: spec.size}
"""
    await house.door.apply(kafka)
    target = await _target(house, "kafkas", "default", "k")

    refused = await house.door.scale(target, 3)
    await house.door.apply(interpreter)
    scaled = await house.door.scale(target, 3)

    assert refused.problems[0].reason == "a Kafka has no replicas"
    assert scaled.action == "scaled"
    assert manifest_of((await house.events(names.SPECS))[-1])["spec"] == {"size": 3}


async def test_what_is_not_there_is_not_found(house: House) -> None:
    result = await house.door.delete(FOO)
    unknown = await house.door.target("gizmo", "default", "x")

    assert result.problems[0].reason == 'deployment.apps "foo" not found in namespace default'
    assert isinstance(unknown, Result)
    assert await house.written() == []


async def test_derived_kinds_are_not_written(house: House) -> None:
    (result,) = await house.door.apply(
        b"{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a}}"
    )

    assert result.problems[0].reason.startswith("a ResourceBinding is made by the engine")


async def test_names_that_share_a_binding_name_do_not_overwrite_each_other(house: House) -> None:
    role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: '%s'}}"

    (first,) = await house.door.apply((role % "a.b").encode())
    (second,) = await house.door.apply((role % "a:b").encode())

    assert first.action == "created"
    assert "has the same binding name" in second.problems[0].reason


async def test_a_cluster_joins_is_tainted_labelled_described_and_leaves(house: House) -> None:
    cluster = b"""
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: member1, labels: {location: us}}
spec: {provider: huaweicloud, region: east, zone: z1}
"""
    target = cluster_target("member1")
    taint = clusters.Taint(key="workload-rebalancer-test", effect="NoExecute")
    gone = door_clusters.TaintKey(key="workload-rebalancer-test", effect="NoExecute")

    assert said(await house.door.apply(cluster)) == ["cluster.cluster.karmada.io/member1 created"]
    assert said(await house.door.apply(cluster)) == ["cluster.cluster.karmada.io/member1 unchanged"]
    actions = [
        await house.door.taint("member1", added=[taint]),
        await house.door.taint("member1", added=[taint]),
        await house.door.taint("member1", removed=[gone]),
        await house.door.taint("member1", removed=[gone]),
        await house.door.cordon("member1", cordoned=True),
        await house.door.cordon("member1", cordoned=False),
        await house.door.label(target, {"location": "eu"}),
        await house.door.label(target, {"location": "eu"}, overwrite=True),
        await house.door.patch(target, {"spec": {"region": "west"}}),
        await house.door.delete(target),
    ]

    assert [result.action or result.problems[0].reason for result in actions] == [
        "tainted",
        "unchanged",
        "untainted",
        'taint "workload-rebalancer-test:NoExecute" not found on member1',
        "cordoned",
        "uncordoned",
        "is 'us' already",
        "labeled",
        "patched",
        "deleted",
    ]
    joined, tainted, _untainted, _cordoned, _uncordoned, labelled, described, left = await house.events(
        names.CLUSTERS
    )
    assert isinstance(joined, clusters.ClusterJoined)
    assert (joined.zones, joined.region, joined.expects) == (("z1",), "east", 0)
    assert any(api.group_version == "apps/v1" and "Deployment" in api.kinds for api in joined.apis)
    assert tainted == clusters.ClusterTainted(name="member1", taint=taint)
    assert labelled == clusters.ClusterLabelled(name="member1", labels={"location": "eu"}, expects=5)
    assert isinstance(described, clusters.ClusterDescribed)
    assert (described.region, described.provider, described.zones) == ("west", "huaweicloud", ("z1",))
    assert left == clusters.ClusterLeft(name="member1", expects=7)


async def test_a_taint_of_the_wrong_form_is_refused(house: House) -> None:
    await house.door.apply(b"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m}}")

    result = await house.door.taint("m", added=[clusters.Taint(key="a", effect="Never")])

    assert result.problems[0].field == "spec.taints[0].effect"


async def test_a_dry_run_writes_nothing(house: House) -> None:
    results = await house.door.apply(DEPLOYMENT + b"---\na: [\n", dry_run=True)

    assert results[0].action == "created (dry run)"
    assert await house.log.read_all(0, 10) == []


async def test_what_a_file_names_is_deleted_last_first(house: House) -> None:
    both = POLICY + b"---" + DEPLOYMENT
    await house.door.apply(both)

    assert said(await house.door.delete_content(both)) == [
        "deployment.apps/foo deleted",
        "propagationpolicy.policy.karmada.io/default-pp deleted",
    ]


async def test_a_thousand_objects_share_their_syncs(house: House) -> None:
    many = b"---".join(DEPLOYMENT.replace(b"name: foo", b"name: foo%d" % place, 1) for place in range(600))
    appends = 0
    append = house.log.append

    async def counted(batch: list[records.Record]) -> list[records.StoredRecord]:
        nonlocal appends
        appends += 1
        return await append(batch)

    house.log.append = counted  # type: ignore[method-assign]
    results = await house.door.apply(many)

    assert {result.action for result in results} == {"created"}
    assert appends == 2


WRONG_POLICY = b"""
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: wrong}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  color: green
  priority: high
  placement:
    clusterAffinity: {clusterNames: [member1]}
    clusterAffinities: [{affinityName: a}]
    spreadConstraints:
      - {spreadByField: region, minGroups: 3, maxGroups: 2}
    replicaScheduling:
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [member1]}, weight: -1}
"""


async def test_all_faults_of_a_policy_are_told_each_with_field_reason_remedy_and_line(house: House) -> None:
    (result,) = await house.door.apply(WRONG_POLICY, file="wrong.yaml")

    assert [(problem.line, problem.field.removeprefix("spec.")) for problem in result.problems] == [
        (7, "color"),
        (8, "priority"),
        (11, "placement.clusterAffinities"),
        (12, "placement.spreadConstraints"),
        (13, "placement.spreadConstraints[0].maxGroups"),
        (17, "placement.replicaScheduling.weightPreference.staticWeightList[0].weight"),
    ]
    assert all(problem.reason for problem in result.problems)
    assert {problem.file for problem in result.problems} == {"wrong.yaml"}
    assert result.problems[2].reason == "can't stand together with clusterAffinity"
    assert result.problems[3].remedy == "add a constraint with spreadByField: cluster"
    (left,) = await house.events(names.REJECTIONS)
    assert isinstance(left, rejections.InputRejected)
    assert left.field == "spec.color"


HOSTILE: list[tuple[str, bytes]] = [
    (
        "alias bomb",
        b"a: &a [x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 121)),
    ),
    ("deep", b'{"a":' * 5000 + b"1" + b"}" * 5000),
    ("duplicate keys", DEPLOYMENT + b"kind: Pod\n"),
    ("wrong type of replicas", DEPLOYMENT.replace(b"replicas: 3", b"replicas: three")),
    ("too many replicas", DEPLOYMENT.replace(b"replicas: 3", b"replicas: 3000000000")),
    ("no kind", b"apiVersion: v1\nmetadata: {name: a}\n"),
    ("name as number", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 3}\n"),
    ("metadata as list", b"apiVersion: v1\nkind: ConfigMap\nmetadata: []\n"),
    ("no name", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"),
    ("name with slash", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a/b}\n"),
    ("kind with slash", b"apiVersion: v1\nkind: Config/Map\nmetadata: {name: a}\n"),
    ("labels as text", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: x}\n"),
    (
        "too large",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + b"x" * 1_100_000 + b"}\n",
    ),
    ("not UTF-8", b"apiVersion: v1\nkind: \xff\n"),
    ("text", b"hello"),
    ("spec as list", POLICY.replace(b"spec:\n", b"spec: []\nold:\n")),
    ("unknown field", POLICY.replace(b"spec:\n", b"spec:\n  bogus: 1\n")),
    (
        "taint at a wrong time",
        b"""
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m}
spec: {taints: [{key: a, effect: NoExecute, timeAdded: yesterday}]}
""",
    ),
]


@pytest.mark.parametrize("content", [case[1] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
async def test_hostile_content_leaves_a_rejection_and_nothing_else(house: House, content: bytes) -> None:
    results = await house.door.apply(content, file="evil.yaml")

    assert [result.action for result in results] == [""]
    assert results[0].problems[0].reason
    assert await house.written() == []
    (left,) = await house.events(names.REJECTIONS)
    assert isinstance(left, rejections.InputRejected)
    assert (left.verdict, left.offset) == ("refused", -1)
    assert len(left.content.encode()) <= 4096
    assert said(await house.door.apply(DEPLOYMENT)) == ["deployment.apps/foo created"]


async def _target(house: House, kind: str, namespace: str, name: str) -> door_wishes.Target:
    found = await house.door.target(kind, namespace, name)
    assert isinstance(found, door_wishes.Target)
    return found


async def test_texts_of_a_secret_are_kept_as_data(house: House) -> None:
    secret = (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\ndata: {a: eA==, c: eQ==}\nstringData: {a: b}\n"
    )
    assert said(await house.door.apply(secret)) == ["secret/pw created"]
    assert said(await house.door.apply(secret)) == ["secret/pw unchanged"]

    manifest = manifest_of((await house.events(names.SPECS))[-1])
    assert manifest["data"] == {"a": "Yg==", "c": "eQ=="}
    assert "stringData" not in manifest
