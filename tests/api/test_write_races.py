"""Write races: computed again from the newest version, and never reported as done if the fold refused the write.

Includes numbers that the views' process knows before the log of this process does.
"""

import asyncio
import itertools
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import Struct

from engine.http.services import Services
from engine.log import port
from engine.writing.mutations import Edited, Problem, Target, Written
from engine.writing.object_changes import Change
from engine.writing.write_api import CLIENT_SOURCE
from events import clusters, codec, keys, records, shapes, topics
from events.json_values import Json, at
from events.kube_objects import KubeObject
from projections.port import ProjectionError
from tests.api.kube.client import CLUSTERS, MERGE, POLICIES, api, create_cluster, metadata
from tests.builders import log_records
from tests.builders.inputs import applied, deleted
from tests.builders.manifests import deployment, manifest, on, override_policy, policy, rebalancer, selector

pytestmark = pytest.mark.virtual_time

KEY = keys.binding_key("Deployment", "default", "foo")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
FOO = deployment("foo", 3)
OVERRIDES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
SCALING = "autoscaling.karmada.io/v1alpha1"
SCALERS = f"/apis/{SCALING}/namespaces/default/federatedhpas"
LIMITS: Json = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "foo"},
    "minReplicas": 1,
    "maxReplicas": 9,
}
REBALANCERS = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"


def paused(event_id: str = "o") -> records.Record:
    """The write of another client that pauses the Deployment, whatever its version."""
    value = {**FOO, "metadata": {"name": "foo", "namespace": "default"}}
    value["spec"] = {**FOO["spec"], "paused": True}  # type: ignore[dict-item]
    head = records.Envelope(id=event_id, source="/other", type="t", time="2024-05-25T09:50:00Z")
    return codec.encode(applied(value), head, partition=keys.partition_of(KEY, topics.SHARDS), key=KEY)


def other_record() -> records.Record:
    """A record of another object in the partition of the Deployment."""
    names = (f"bar-{number}" for number in itertools.count())
    others = (log_records.record(deleted(name)) for name in names)
    return next(record for record in others if record.partition == keys.partition_of(KEY, topics.SHARDS))


def overtake_once(
    monkeypatch: pytest.MonkeyPatch,
    services: Services,
    before: Sequence[records.Record],
    after: Sequence[records.Record] = (),
) -> None:
    """Let another client append between the computation of the next write and its append, and after its append."""
    append, overtaken = services.log.append, list[str]()

    async def overtaking(batch: list[records.Record]) -> list[records.StoredRecord]:
        if overtaken:
            return list(await append(batch))
        overtaken.append("once")
        for record in before:
            await append([record])
        stored = list(await append(batch))
        for record in after:
            await append([record])
        await services.views.wait_folded(services.log.last_number())
        return stored

    monkeypatch.setattr(services.log, "append", overtaking)


async def test_recomputed_write_keeps_a_concurrent_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        overtake_once(monkeypatch, services, [paused()])
        patch = {"spec": {"replicas": 9}}
        answer = await kube.patch(f"{DEPLOYMENTS}/foo", json=patch, headers=MERGE)
        assert answer.status_code == 200, answer.text
        spec = (await kube.get(f"{DEPLOYMENTS}/foo")).json()["spec"]
        assert (spec["replicas"], spec["paused"]) == (9, True)


async def test_recomputed_write_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        overtake_once(monkeypatch, services, [paused()])
        patch = {"spec": {"replicas": 9, "replcas": 8}}
        answer = await kube.patch(f"{DEPLOYMENTS}/foo", json=patch, headers=MERGE)
        assert answer.status_code == 200, answer.text
        spec = (await kube.get(f"{DEPLOYMENTS}/foo")).json()["spec"]
        assert (spec["replicas"], spec["paused"]) == (9, True)
        assert answer.headers.get_list("warning") == ['299 - "unknown field \\"spec.replcas\\""']


async def test_overtaken_write_is_repeated_although_another_one_follows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        overtake_once(monkeypatch, services, [other_record(), paused("o1")], [paused("o2")])
        answer = await kube.patch(f"{DEPLOYMENTS}/foo", json={"spec": {"replicas": 9}}, headers=MERGE)
        assert answer.status_code == 200, answer.text
        spec = (await kube.get(f"{DEPLOYMENTS}/foo")).json()["spec"]
        assert (spec["replicas"], spec["paused"]) == (9, True)


async def test_accepted_write_is_not_repeated_although_another_one_follows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        overtake_once(monkeypatch, services, [other_record()], [paused()])
        answer = await kube.patch(f"{DEPLOYMENTS}/foo", json={"spec": {"replicas": 9}}, headers=MERGE)
        assert answer.status_code == 200, answer.text
        spec = (await kube.get(f"{DEPLOYMENTS}/foo")).json()["spec"]
        assert (spec["replicas"], spec["paused"]) == (3, True)


async def test_each_write_of_a_batch_gets_its_own_answer_although_one_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        overtake_once(monkeypatch, services, [paused()])
        names = ("foo", "bar", "baz")
        answers = await asyncio.gather(*(write(services, name, 4) for name in names))
    assert [answer.mutated.value.name for answer in answers if isinstance(answer, Written)] == [*names]


async def label_meanwhile(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another client label the object of the newest record before the next write of the API is appended."""
    (stored,) = await services.log.read_all(services.log.last_number() - 1, 1)
    decoded = codec.decode(stored)
    assert isinstance(decoded, codec.Decoded)
    assert isinstance(decoded.data, shapes.ObjectApplied)
    labelled = KubeObject.from_json(decoded.data.manifest).with_metadata({"labels": {"a": "b"}})
    raw = msgspec.Raw(msgspec.json.encode(labelled.document))
    other = msgspec.structs.replace(decoded.data, manifest=raw, expects=None)
    overtake_once(monkeypatch, services, [log_records.record(other)])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (DEPLOYMENTS, FOO),
        ("/api/v1/namespaces", manifest("v1", "Namespace", "foo")),
        (POLICIES, policy("foo", on("member1"), selector("foo"))),
        (OVERRIDES, override_policy("foo", namespace="default", overrideRules=[])),
        (REBALANCERS, rebalancer("foo", selector("foo", namespace="default"))),
    ],
)
async def test_deletion_of_a_version_that_another_client_replaces_meanwhile_is_a_conflict(
    path: str, value: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api() as (kube, services):
        created = await kube.post(path, json=value)
        assert created.status_code == 201, created.text
        await label_meanwhile(services, monkeypatch)
        required = {"preconditions": {"resourceVersion": metadata(created)["resourceVersion"]}}
        answer = await kube.request("DELETE", f"{path}/foo", json=required)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict"), answer.text
        kept = metadata(await kube.get(f"{path}/foo"))
        assert (at(kept, "labels", "a"), "deletionTimestamp" in kept) == ("b", False)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (DEPLOYMENTS, FOO, "replicas"),
        (SCALERS, manifest(SCALING, "FederatedHPA", "foo", "default", spec=LIMITS), "desiredReplicas"),
    ],
)
async def test_status_of_a_version_that_another_client_replaces_meanwhile_is_a_conflict(
    path: str, value: Json, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api() as (kube, services):
        created = await kube.post(path, json=value)
        assert created.status_code == 201, created.text
        await label_meanwhile(services, monkeypatch)
        version = {"resourceVersion": metadata(created)["resourceVersion"]}
        body = {"metadata": version, "status": {field: 7}}
        answer = await kube.patch(f"{path}/foo/status", json=body, headers=MERGE)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict"), answer.text
        assert at((await kube.get(f"{path}/foo")).json(), "status", field) != 7


async def test_write_refused_by_the_fold_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api() as (kube, services):
        append = services.log.append

        async def spoilt(batch: list[records.Record]) -> list[records.StoredRecord]:
            return list(await append([msgspec.structs.replace(record, value=b"{}") for record in batch]))

        monkeypatch.setattr(services.log, "append", spoilt)
        answer = await kube.post(DEPLOYMENTS, json=FOO)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")


async def test_write_succeeds_if_the_views_already_know_its_later_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        assert (await kube.post(DEPLOYMENTS, json=FOO)).status_code == 201
        log = services.log
        append, ends, newest = log.append, log.ends, log.newest
        known: list[port.Ends] = []

        async def followed(batch: list[records.Record]) -> list[records.StoredRecord]:
            stored = list(await append(batch))
            known.append(dict(ends()))
            await append([log_records.record(deleted("foo"), key=KEY)])
            await services.views.wait_folded(log.last_number())
            return stored

        async def caught_up_newest() -> int:
            known.clear()
            return await newest()

        monkeypatch.setattr(log, "append", followed)
        monkeypatch.setattr(log, "ends", lambda: known[-1] if known else ends())
        monkeypatch.setattr(log, "newest", caught_up_newest)
        answer = await kube.patch(f"{DEPLOYMENTS}/foo", json={"spec": {"replicas": 9}}, headers=MERGE)
        assert answer.status_code == 200, answer.text


async def test_watch_from_a_number_known_only_to_the_views_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        created = await kube.post(DEPLOYMENTS, json=FOO)
        version = created.json()["metadata"]["resourceVersion"]
        log = services.log
        last_number, newest = log.last_number, log.newest
        is_behind = [True]

        async def caught_up_newest() -> int:
            is_behind.clear()
            return await newest()

        monkeypatch.setattr(log, "last_number", lambda: last_number() - len(is_behind))
        monkeypatch.setattr(log, "newest", caught_up_newest)
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "1"}
        assert (await kube.get(DEPLOYMENTS, params=query)).status_code == 200


async def test_report_of_a_cluster_does_not_conflict_with_a_replacement() -> None:
    async with api() as (kube, services):
        await create_cluster(kube)
        seen = (await kube.get(f"{CLUSTERS}/edge")).json()
        reports = (
            clusters.CapacityReported(name="edge", allocatable={"cpu": "8"}),
            clusters.ClusterHealthChanged(name="edge", ready=True),
            clusters.ClusterApisReported(name="edge", apis=()),
        )
        for index, report in enumerate(reports):
            head = records.Envelope(id=str(index), source="/r", type="t", time="2024-05-25T09:50:00Z")
            await services.log.append([codec.encode(report, head, partition=0, key="edge")])
        shown = (await kube.get(f"{CLUSTERS}/edge")).json()
        assert int(shown["metadata"]["resourceVersion"]) > int(seen["metadata"]["resourceVersion"])
        changed = {**seen, "spec": {**seen["spec"], "region": "west"}}
        answer = await kube.put(f"{CLUSTERS}/edge", json=changed)
        assert answer.status_code == 200, answer.text
        # Now a client has written it.
        changed["spec"]["region"] = "east"
        assert (await kube.put(f"{CLUSTERS}/edge", json=changed)).status_code == 409


async def test_write_that_succeeded_is_answered_although_another_of_its_group_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two writes of one object share a group, and follow each other: the second finds the log away."""
    async with api() as (_kube, services):
        append, appends = services.log.append, list[str]()

        async def failing(batch: list[records.Record]) -> list[records.StoredRecord]:
            appends.append(batch[0].key)
            if len(appends) > 1:
                raise port.LogError("the log is away")
            return list(await append(batch))

        monkeypatch.setattr(services.log, "append", failing)
        changes = [write(services, "foo", number) for number in (3, 4)]
        first, second = await asyncio.gather(*changes, return_exceptions=True)
    assert isinstance(first, Written)
    assert isinstance(second, port.LogError)


async def test_write_whose_views_fail_after_the_append_has_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as (kube, services):
        append, wait_folded, appended = services.log.append, services.views.wait_folded, list[str]()

        async def appending(batch: list[records.Record]) -> list[records.StoredRecord]:
            appended.append(batch[0].key)
            return list(await append(batch))

        async def failing(number: int) -> None:
            if appended:
                raise ProjectionError("the disk is full")
            await wait_folded(number)

        with monkeypatch.context() as patched:
            patched.setattr(services.log, "append", appending)
            patched.setattr(services.views, "wait_folded", failing)
            answer = await kube.post(DEPLOYMENTS, json=FOO)
        assert (answer.status_code, answer.json()["reason"]) == (504, "Timeout"), answer.text
        assert "the change is recorded" in answer.json()["message"]
        assert (await kube.get(f"{DEPLOYMENTS}/foo")).status_code == 200


async def test_mutation_that_cannot_be_computed_fails_no_other() -> None:
    async with api() as (_kube, services):
        changes = [write(services, f"foo{number}", number) for number in (-1, 1)]
        first, second = await asyncio.gather(*changes, return_exceptions=True)
    assert isinstance(first, AssertionError)
    assert isinstance(second, Written)


async def test_many_writes_of_one_object_in_a_batch_are_carried_out_in_their_order() -> None:
    async with api() as (kube, services):
        before = services.log.last_number()
        answers = await asyncio.gather(*(write(services, "foo", number) for number in range(10)))
        assert [type(answer) for answer in answers] == [Written] * 10
        assert services.log.last_number() - before == 10, "no write was refused"
        assert (await kube.get(f"{DEPLOYMENTS}/foo")).json()["spec"]["replicas"] == 9


async def test_object_is_created_in_a_namespace_of_the_same_batch() -> None:
    shop = Target(api_version="v1", kind="Namespace", namespace="", name="shop")
    async with api() as (_kube, services):
        namespace = Change(target=shop, edit=Content(manifest("v1", "Namespace", "shop")))
        answers = await asyncio.gather(
            services.write_api.change(namespace, source=CLIENT_SOURCE),
            write(services, "foo", 1, "shop"),
            return_exceptions=True,
        )
    assert [type(answer) for answer in answers] == [Written, Written]


class Content(Struct, frozen=True):
    """Write an object; no object is a defect."""

    value: Json | None

    def apply(self, live: KubeObject | None) -> Edited:
        del live
        assert self.value is not None
        return Edited(KubeObject(self.value))


async def write(
    services: Services, name: str, replicas: int, namespace: str = "default"
) -> Written | Problem:
    """Write a Deployment; a negative number of replicas is a defect."""
    target = Target(api_version="apps/v1", kind="Deployment", namespace=namespace, name=name)
    value = deployment(name, replicas, namespace=namespace) if replicas >= 0 else None
    return await services.write_api.change(Change(target=target, edit=Content(value)), source=CLIENT_SOURCE)
