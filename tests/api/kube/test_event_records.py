"""Kubernetes Events of a log with records of other producers, whose times can be anywhere, or malformed."""

import json
from collections.abc import Iterable

import pytest
from msgspec import structs

from engine.http.kube.kubernetes_events import lists
from engine.http.kube.kubernetes_events.lists import Occurrence
from engine.http.kube.kubernetes_events.subjects import Subjects
from events import decisions, shapes, topics
from events.records import StoredRecord
from tests.api.kube.client import api
from tests.builders import inputs
from tests.builders.log_records import envelope, record, structured
from tests.builders.manifests import deployment

EVENTS = "/api/v1/namespaces/default/events"


async def test_record_in_structured_mode_gives_events_at_its_time() -> None:
    async with api() as (client, services):
        await services.log.append([structured(record(inputs.joined("member1")))])
        answer = await client.get(EVENTS)
        assert answer.status_code == 200, answer.text
        events = {event["reason"]: event["lastTimestamp"] for event in answer.json()["items"]}
        assert events["CreateExecutionSpaceSucceed"] == "2024-05-25T09:49:51Z"


async def test_quota_without_a_time_has_events() -> None:
    async with api() as (client, services):
        untimed = structs.replace(envelope("e1"), time="")
        await services.log.append([record(inputs.quota("small"), untimed)])
        answer = await client.get(EVENTS)
        assert answer.status_code == 200, answer.text
        assert {event["involvedObject"]["name"] for event in answer.json()["items"]} == {"small"}


async def test_list_keeps_no_records_of_policies_without_events(monkeypatch: pytest.MonkeyPatch) -> None:
    occurred, kept = lists.occurred, list[StoredRecord]()

    def watched(records: Iterable[StoredRecord], subjects: Subjects) -> list[Occurrence]:
        kept.extend(records)
        return occurred(kept, subjects)

    monkeypatch.setattr(lists, "occurred", watched)
    async with api() as (client, services):
        policies = [inputs.override("one"), inputs.policy("two"), inputs.quota("three")]
        await services.log.append([record(data) for data in [*policies, inputs.joined("member1")]])
        assert (await client.get(EVENTS)).json()["items"]
    assert [stored.key for stored in kept if stored.topic == topics.POLICIES] == [record(policies[2]).key]


async def test_log_that_begins_with_a_malformed_time_has_namespaces() -> None:
    async with api() as (client, services):
        first = structs.replace(envelope("e1"), time="yesterday")
        await services.log.append([record(inputs.joined("member1"), first)])
        answer = await client.get("/api/v1/namespaces/kube-system")
        assert answer.status_code == 200, answer.text
        assert "creationTimestamp" not in answer.json()["metadata"]


async def test_refused_claim_is_shown_as_long_as_its_template_exists() -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with api() as (client, services):
        body = deployment("web", 1)
        for count in (1, 0):
            uid = (await client.post(path, json=body)).json()["metadata"]["uid"]
            if count:
                policy = shapes.PolicyRef(kind="PropagationPolicy", name="all", namespace="default")
                refused = decisions.ClaimRefused(
                    key=inputs.key("web"),
                    template=inputs.ref("web"),
                    uid=uid,
                    policy=policy,
                    fault="no class",
                )
                await services.log.append([record(refused, key=refused.key)])
            listed = (await client.get(EVENTS)).json()["items"]
            assert [event["reason"] for event in listed] == ["ApplyPolicyFailed"] * count
            assert (await client.delete(f"{path}/web")).status_code == 200
            assert (await client.get(EVENTS)).json()["items"] == []


async def test_terminating_namespace_accepts_no_new_events() -> None:
    async with api() as (client, services):
        path, namespaces = "/api/v1/namespaces/leaving/events", "/api/v1/namespaces"
        assert (await client.post(namespaces, json={"metadata": {"name": "leaving"}})).status_code == 201
        body = {"metadata": {"name": "known"}, "involvedObject": {"namespace": "leaving"}, "count": 1}
        assert (await client.post(path, json=body)).status_code == 201
        assert (await client.delete(f"{namespaces}/leaving")).status_code == 200
        before = services.log.last_number()
        refused = await client.post(path, json={**body, "metadata": {"name": "new"}})
        assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
        assert "because it is being terminated" in refused.json()["message"]
        assert services.log.last_number() == before
        assert (await client.put(f"{path}/known", json={**body, "count": 2})).status_code == 200


async def test_event_of_a_client_has_the_fields_that_every_event_has() -> None:
    involved = {"kind": "ConfigMap", "name": "web", "namespace": "default"}
    async with api() as (client, _):
        created = await client.post(EVENTS, json={"metadata": {"name": "web.1"}, "involvedObject": involved})
        assert created.status_code == 201, created.text
        assert created.json()["reportingComponent"] == ""
        assert created.json()["eventTime"] is None
        assert (await client.get(f"{EVENTS}/web.1")).json() == created.json()
        listed = (await client.get(EVENTS)).json()["items"]
        watch = await client.get(EVENTS, params={"watch": "1", "timeoutSeconds": "1"})
    own = {name: item for name, item in created.json().items() if name not in ("apiVersion", "kind")}
    assert [item | own for item in listed] == listed
    assert created.json() in [json.loads(line)["object"] for line in watch.text.splitlines()]
