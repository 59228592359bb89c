"""Reads and refusals on a replica that has not yet received what another replica answered."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from engine import shared_waits
from engine.log import port
from engine.log.local import MemoryLog
from events.records import Record, StoredRecord
from tests.api.servers import TOKEN, client, kube_client, serving
from tests.api.story_records import moved
from tests.proof.logs import to_append

pytestmark = pytest.mark.virtual_time

MAPS = "/api/v1/namespaces/default/configmaps"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


class SharedLog(MemoryLog):
    """The log of one replica; ``elsewhere`` appends as another replica, and this one learns of it only when it asks."""

    def __init__(self) -> None:
        super().__init__()
        self.known = 0
        self.asked = 0
        self._known_ends: port.Ends = {}
        self._moved = shared_waits.EndSignal()

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored = await super().append(batch)
        self._receive()
        return stored

    async def elsewhere(self, batch: Sequence[Record]) -> None:
        await super().append(batch)

    def ends(self) -> port.Ends:
        return self._known_ends

    def last_number(self) -> int:
        return self.known

    async def newest(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        self._receive()
        return self.known

    async def wait(self, after: int) -> None:
        await self._moved.wait(after)

    def _receive(self) -> None:
        self.known = super().last_number()
        self._known_ends = super().ends()
        self._moved.move(self.known)


class Replica:
    """A replica, and the API of another one on the same log."""

    def __init__(self, log: SharedLog, kube: httpx.AsyncClient, queries: httpx.AsyncClient) -> None:
        self.log = log
        self.kube = kube
        self.queries = queries

    async def written_elsewhere(self, path: str, body: dict[str, Any]) -> None:
        """Create an object as another replica that does not notify this one."""
        async with serving(to_append(await self.log.read_all(0, 1_000))) as services:
            before = services.log.last_number()
            async with kube_client(services) as kube:
                assert (await kube.post(path, json=body)).status_code == 201
            await self.log.elsewhere(to_append(await services.log.read_all(before, 1_000)))


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    log = SharedLog()
    async with serving(log=log) as services, client(services) as queries, kube_client(services) as kube:
        replica = Replica(log, kube, queries)
        await replica.written_elsewhere(MAPS, {"metadata": {"name": "one"}, "data": {"a": "1"}})
        yield replica


async def test_get_shows_writes_of_another_replica(replica: Replica) -> None:
    assert (await replica.kube.get(f"{MAPS}/one")).json()["data"] == {"a": "1"}


async def test_list_shows_writes_of_another_replica(replica: Replica) -> None:
    listed = (await replica.kube.get(MAPS)).json()
    assert "one" in [item["metadata"]["name"] for item in listed["items"]]


@pytest.mark.parametrize("path", ["configmaps/one", "configmaps"])
async def test_read_of_any_version_does_not_query_the_log_end(replica: Replica, path: str) -> None:
    await replica.kube.get(MAPS)
    before = replica.log.asked
    answer = await replica.kube.get(f"/api/v1/namespaces/default/{path}?resourceVersion=0")
    assert answer.status_code == 200
    assert replica.log.asked == before


async def test_watch_without_a_version_begins_after_writes_of_another_replica(replica: Replica) -> None:
    answer = await replica.kube.get(f"{MAPS}?watch=1&timeoutSeconds=1")
    assert '"name":"one"' in answer.text


async def test_list_of_the_query_api_shows_writes_of_another_replica(replica: Replica) -> None:
    listed = (await replica.queries.get("/api/v1/objects?kind=configmap")).json()
    assert "one" in [item["metadata"]["name"] for item in listed["items"]]


async def test_number_issued_by_another_replica_is_accepted(replica: Replica) -> None:
    answer = await replica.queries.get("/api/v1/objects?asOf=1")
    assert answer.status_code == 200


async def test_log_pages_show_records_of_another_replica(replica: Replica) -> None:
    page = (await replica.queries.get("/api/v1/log")).json()
    assert "one" in str(page["items"])


async def test_object_created_by_another_replica_is_patched_and_deleted(replica: Replica) -> None:
    patch = {"content-type": "application/merge-patch+json"}
    patched = await replica.kube.patch(f"{MAPS}/one", json={"data": {"b": "2"}}, headers=patch)
    assert patched.status_code == 200
    await replica.written_elsewhere(MAPS, {"metadata": {"name": "two"}})
    assert (await replica.kube.delete(f"{MAPS}/two")).status_code == 200


async def test_create_of_an_object_of_another_replica_is_a_conflict(replica: Replica) -> None:
    answer = await replica.kube.post(MAPS, json={"metadata": {"name": "one"}})
    assert (answer.status_code, answer.json()["reason"]) == (409, "AlreadyExists")


async def test_successful_write_does_not_query_the_log_end(replica: Replica) -> None:
    before = replica.log.asked
    assert (await replica.kube.post(MAPS, json={"metadata": {"name": "new"}})).status_code == 201
    assert replica.log.asked == before


async def test_binding_that_another_replica_returned_is_replaced() -> None:
    path = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment"
    log = SharedLog()
    async with serving(log=log) as services, kube_client(services) as kube:
        await log.elsewhere(await moved())
        async with serving(to_append(await log.read_all(0, 1_000))) as others, kube_client(others) as other:
            binding = (await other.get(path)).json()
        binding["spec"]["suspension"] = {"scheduling": True}
        answer = await kube.put(path, json=binding)
        assert answer.status_code == 200, answer.text


async def test_kind_defined_through_another_replica_is_served(replica: Replica) -> None:
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "stable.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    definition = {"metadata": {"name": "crontabs.stable.example.com"}, "spec": spec}
    await replica.written_elsewhere("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    answer = await replica.kube.get("/apis/stable.example.com/v1/namespaces/default/crontabs")
    assert answer.status_code == 200


async def test_access_review_considers_roles_of_another_replica(replica: Replica) -> None:
    group, user = "rbac.authorization.k8s.io", {"impersonate-user": "alice"}
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = (await replica.kube.post(path, json=review, headers=user)).json()
    assert answer["status"]["allowed"] is False
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    }
    await replica.written_elsewhere(f"/apis/{group}/v1/clusterrolebindings", binding)
    answer = (await replica.kube.post(path, json=review, headers=user)).json()
    assert answer["status"]["allowed"] is True
