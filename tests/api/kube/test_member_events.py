"""Kubernetes Events in a simulated member: one object in both API groups."""

import pytest

from events.json_values import Json
from tests.api.kube.client import MEMBER, member

pytestmark = pytest.mark.virtual_time

CORE = f"{MEMBER}/api/v1/namespaces/default/events"
EVENTS = f"{MEMBER}/apis/events.k8s.io/v1/namespaces/default/events"


async def test_event_is_the_same_object_in_both_api_groups() -> None:
    involved: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "namespace": "default"}
    event: Json = {
        "metadata": {"name": "web.1"},
        "regarding": involved,
        "reason": "Started",
        "note": "it runs",
        "type": "Normal",
        "action": "Start",
        "eventTime": "2024-05-25T10:00:00.000000Z",
        "reportingController": "example.io/controller",
        "reportingInstance": "controller-0",
    }
    async with member() as client:
        created = await client.post(EVENTS, json=event)
        assert created.status_code == 201, created.text
        core = (await client.get(CORE, params={"fieldSelector": "involvedObject.name=web"})).json()["items"]
        assert [(item["message"], item["reportingComponent"]) for item in core] == [
            ("it runs", "example.io/controller")
        ]
        other = (await client.get(EVENTS, params={"fieldSelector": "regarding.name=web"})).json()["items"]
        assert [item["note"] for item in other] == ["it runs"]
        assert other[0]["metadata"]["uid"] == core[0]["metadata"]["uid"]
        assert (await client.delete(f"{CORE}/web.1")).is_success
        assert (await client.get(f"{EVENTS}/web.1")).status_code == 404
