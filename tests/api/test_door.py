"""The door by example: what is sent, what the log then holds, and what is answered."""

import msgspec
import pytest

from engine.gateway import door_wishes
from events import envelope, partitioning, policies, records, specs
from events import topics as names
from events.codec import encode
from tests.api.doors import DEPLOYMENT, FOO, POLICY, House, manifest_of, said


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
