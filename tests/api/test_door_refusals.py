"""What the door does not take: each fault told with its field and its reason, and a rejection left for each."""

import msgspec
import pytest

from engine.gateway.door_results import Result
from events import records, rejections, specs
from events import topics as names
from tests.api.doors import DEPLOYMENT, FOO, POLICY, House, manifest_of, said


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
