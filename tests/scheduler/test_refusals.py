"""Bindings whose writes the API refuses for long, as an admission webhook does: others are written meanwhile."""

import asyncio
from http import HTTPStatus

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.bench import karmada_api
from engine.bench.karmada_api import Json, ObjectPath, binding, cluster, divided
from engine.log import local
from engine.scheduler.writer import WORKERS
from tests.scheduler.api import Api, serving
from tests.scheduler.scheduling import decided, placed, scheduled, scheduling, writes
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

DENIED = "denied"
SOON_S = 5


class Denying(Api):
    """An API that answers writes of some bindings with ``code`` while that is not 0.

    Unless it ``is_readable``, it fails to read them too.
    """

    def __init__(self, code: int, *, is_readable: bool = True) -> None:
        super().__init__()
        self.code = code
        self.is_readable = is_readable
        self.denied = 0
        self.gone = 0
        """Number of following reads of the discovery documents and of Leases that are answered 410."""
        self.put("clusters", cluster("member1"))

    def _read(self, request: Request, plural: str, namespace: str, name: str) -> Response:
        if plural == "leases" and self.gone:
            self.gone -= 1
            return karmada_api.status(410, "Gone")
        if self.code and not self.is_readable and name.startswith(DENIED):
            return karmada_api.status(500, "Fault")
        return super()._read(request, plural, namespace, name)

    async def _groups(self, request: Request) -> Response:
        if self.gone:
            self.gone -= 1
            return karmada_api.status(410, "Gone")
        return await super()._groups(request)

    def _write(self, method: str, path: ObjectPath, subresource: str, body: Json) -> Response:
        if self.code and path[2].startswith(DENIED):
            self.denied += 1
            return karmada_api.status(self.code, "Fault")
        return super()._write(method, path, subresource, body)


@pytest.mark.parametrize(
    ("code", "is_readable"), [(403, True), (410, True), (500, True), (409, True), (409, False)]
)
async def test_refused_bindings_do_not_keep_others_from_being_written(code: int, is_readable: bool) -> None:
    api = Denying(code, is_readable=is_readable)
    names = [f"{DENIED}{number}" for number in range(WORKERS + 4)]
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        for name in names:
            api.put("resourcebindings", binding(name, 4, divided("member1")))
        await until_async(lambda: api.denied >= WORKERS)
        api.put("resourcebindings", binding("web", 4, divided("member1")))
        await until_async(lambda: scheduled(api, "web") == "Success", SOON_S)
        api.code = 0
        await until_async(lambda: all(scheduled(api, name) == "Success" for name in names))
    assert all(placed(api, name) == {"member1": 4} for name in names)
    assert set(writes(api).values()) == {2}


@pytest.mark.parametrize("code", [403, 409])
async def test_refused_workload_leaves_its_cluster_to_another_one_of_its_group(code: int) -> None:
    api, groups = Denying(code), {"antiAffinityGroup": "tier=a"}
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        api.put("resourcebindings", binding(DENIED, 2, divided("member1"), workloadAffinityGroups=groups))
        await until_async(lambda: api.denied)
        api.put("resourcebindings", binding("web", 2, divided("member1"), workloadAffinityGroups=groups))
        await until_async(lambda: scheduled(api, "web"))
        api.code = 0
        await until_async(lambda: scheduled(api, DENIED))
    assert (placed(api, "web"), placed(api, DENIED)) == ({"member1": 2}, {})
    assert scheduled(api, DENIED) == "NoClusterFit"


async def test_api_behind_a_proxy_that_answers_gone_is_tried_again() -> None:
    api = Denying(0)
    api.gone = 3
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        api.put("resourcebindings", binding("web", 4, divided("member1")))
        await until_async(lambda: scheduled(api, "web") == "Success")
    assert api.gone == 0


class Garbling(Api):
    """An API that answers the first writes of bindings with a resourceVersion that is no number."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = ["", "none", "9" * 5_000]
        self.put("clusters", cluster("member1"))

    def _write(self, method: str, path: ObjectPath, subresource: str, body: Json) -> Response:
        response = super()._write(method, path, subresource, body)
        if path[0] == "resourcebindings" and response.status_code == HTTPStatus.OK and self.versions:
            value = msgspec.json.decode(response.body, type=Json)
            value["metadata"]["resourceVersion"] = self.versions.pop()
            return JSONResponse(value)
        return response


async def test_answer_with_a_version_that_is_no_number_stops_nothing() -> None:
    api = Garbling()
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        for name in ("a", "b"):
            api.put("resourcebindings", binding(name, 4, divided("member1")))
        await until_async(lambda: all(scheduled(api, name) == "Success" for name in ("a", "b")))
    assert api.versions == []


class Replacing(Api):
    """An API whose first write of a binding finds it deleted, and answers after its successor was decided on."""

    def __init__(self, log: local.MemoryLog) -> None:
        super().__init__()
        self.is_replaced = False
        self._log = log
        self.put("clusters", cluster("member1"))

    async def _answer(self, request: Request) -> Response:
        if request.method != "PATCH" or "web-deployment" not in request.url.path or self.is_replaced:
            return await super()._answer(request)
        self.is_replaced = True
        self.delete("resourcebindings", "default", "web-deployment")
        response = await super()._answer(request)
        self.put("resourcebindings", binding("web", 5, divided("member1")))
        async with asyncio.timeout(SOON_S):
            while len(await decided(self._log)) < 2:  # noqa: ASYNC110  # the log is polled as users do
                await asyncio.sleep(0.01)
        return response


async def test_successor_of_a_deleted_binding_is_written() -> None:
    log = local.MemoryLog()
    api = Replacing(log)
    async with serving(api) as access, scheduling(access, log):
        api.put("resourcebindings", binding("web", 4, divided("member1")))
        await until_async(lambda: api.is_replaced and scheduled(api, "web") == "Success", SOON_S)
    assert placed(api, "web") == {"member1": 5}
