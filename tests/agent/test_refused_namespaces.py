"""Namespaces of the control plane that the member refuses, as an admission webhook does."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.agent import kinds, messages
from engine.agent.call_limits import Gate
from engine.agent.gateway_client import GatewayClient
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.agent.namespaces import NamespaceSync
from engine.bench import karmada_api
from engine.domain import marks
from tests.agent.in_process import NAME, OWNED, Gateway, Json, Member, key_of, running
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


class Propagating(Gateway):
    """A control plane with these namespaces."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names
        self.labels: Json = {}
        """Further labels of all namespaces."""
        self.requests = 0

    async def _namespaces(self, _request: Request) -> Response:
        self.requests += 1
        metadata = [
            {
                "name": name,
                "labels": {marks.MANAGED: "true", **self.labels},
                "annotations": {marks.WORK_NAMESPACE: marks.work_namespace(NAME)},
            }
            for name in self._names
        ]
        manifests = [
            msgspec.Raw(msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": fields}))
            for fields in metadata
        ]
        return Response(msgspec.json.encode(messages.Namespaces(manifests=tuple(manifests))))


class Refusing(Member):
    """A member with namespaces; it answers changes of ``refused`` with ``code``."""

    def __init__(self, *names: str, refused: str, code: int) -> None:
        super().__init__()
        self.namespaces: dict[str, Json] = {name: _namespace(name) for name in names}
        self.missing = ""
        """Why applies of objects get 404 while there is no namespace; empty if they succeed."""
        self.namespaces_read: list[str] = []
        self.applied_namespaces: list[tuple[str, bool]] = []
        """The applied namespaces, and whether the apply takes fields from other managers."""
        self.refused, self._code = refused, code

    def routes(self) -> list[Route]:
        path = "/api/v1/namespaces"
        own = [
            Route(path, self._list_namespaces),
            Route(f"{path}/{{name}}", self._namespace, methods=["GET", "PATCH", "DELETE"]),
        ]
        return [*own, *super().routes()]

    async def _object(self, request: Request) -> Response:
        if request.method == "PATCH" and self.missing and not self.namespaces:
            content: Json = {"kind": "Status", "reason": "NotFound", "message": self.missing}
            return JSONResponse(content, 404)
        return await super()._object(request)

    async def _list_namespaces(self, request: Request) -> Response:
        is_labelled = "labelSelector" in request.query_params
        items = [item for item in self.namespaces.values() if not is_labelled or "labels" in item["metadata"]]
        return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": items})

    async def _namespace(self, request: Request) -> Response:
        name = request.path_params["name"]
        namespace = self.namespaces.get(name)
        if request.method == "GET":
            self.namespaces_read.append(name)
            return karmada_api.status(404, "NotFound") if namespace is None else JSONResponse(namespace)
        if name == self.refused:
            return karmada_api.status(self._code, "Fault")
        if request.method == "DELETE":
            return JSONResponse(self.namespaces.pop(name))
        self.applied_namespaces.append((name, request.query_params["force"] == "true"))
        self.namespaces[name] = msgspec.json.decode(await request.body(), type=Json)
        return JSONResponse(self.namespaces[name])


def _namespace(name: str) -> Json:
    marked = {
        "labels": {marks.MANAGED: "true"},
        "annotations": {marks.WORK_NAMESPACE: marks.work_namespace(NAME)},
        "managedFields": [OWNED],
    }
    return {"metadata": {"name": name, "uid": f"uid-{name}", **marked}}


@pytest.mark.parametrize("code", [403, 500])
async def test_refused_namespace_does_not_keep_others_from_being_applied_and_is_soon_tried_again(
    code: int, tmp_path: Path
) -> None:
    gateway, member = Propagating("a", "b"), Refusing("old", refused="a", code=code)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.change_namespaces(1)
        await until_async(lambda: set(member.namespaces) == {"b"})
        member.refused = ""
        async with asyncio.timeout(5):
            await until_async(lambda: set(member.namespaces) == {"a", "b"})


@pytest.mark.parametrize("code", [403, 500])
async def test_namespace_whose_deletion_is_refused_does_not_keep_others(code: int, tmp_path: Path) -> None:
    gateway, member = Propagating("c"), Refusing("a", "b", refused="a", code=code)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.change_namespaces(1)
        await until_async(lambda: set(member.namespaces) == {"a", "c"})


@pytest.mark.parametrize(
    ("message", "created"),
    [
        ('namespaces "default" not found', ["default"]),
        ("the server could not find the requested resource", []),
    ],
)
async def test_namespace_is_created_only_if_the_api_misses_it(
    message: str, created: list[str], tmp_path: Path
) -> None:
    gateway, member = Gateway(), Refusing(refused="", code=0)
    member.missing = message
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        assert gateway.reports[key_of("web")].fault == ("" if created else message)
    assert list(member.namespaces) == created


async def test_changed_labels_of_a_namespace_are_applied_by_force_and_a_new_one_is_not(
    tmp_path: Path,
) -> None:
    gateway, member = Propagating("new", "old"), Refusing("old", refused="", code=0)
    gateway.labels = {"team": "red"}
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.change_namespaces(1)
        await until_async(lambda: len(member.applied_namespaces) == 2)
        gateway.labels = {"team": "blue"}
        gateway.change_namespaces(2)
        await until_async(lambda: len(member.applied_namespaces) == 4)
    assert member.applied_namespaces == [("new", False), ("old", True), ("new", True), ("old", True)]
    assert {item["metadata"]["labels"]["team"] for item in member.namespaces.values()} == {"blue"}


async def test_namespaces_of_other_clients_are_listed_and_not_read_one_by_one(tmp_path: Path) -> None:
    theirs = [f"another{number}" for number in range(20)]
    gateway, member = Propagating("ours", *theirs), Refusing(refused="", code=0)
    member.namespaces = {name: {"metadata": {"name": name, "uid": f"uid-{name}"}} for name in theirs}
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.change_namespaces(1)
        await until_async(lambda: "ours" in member.namespaces)
    assert member.namespaces_read == ["ours"]


async def test_namespaces_are_read_once_for_many_objects_that_need_one() -> None:
    names = [f"space{number}" for number in range(20)]
    gateway, member = Propagating(*names), Refusing(refused="", code=0)
    async with (
        karmada_api.serving(gateway.routes()) as gateway_url,
        karmada_api.serving(member.routes()) as member_url,
    ):
        control, api = GatewayClient(gateway_url, "t", NAME), MemberApi(Access(server=member_url))
        async with aclosing(control), aclosing(api):
            gate = Gate(lambda: None)
            known_kinds = kinds.Kinds(api, gate, lambda _report: None)
            sync = NamespaceSync(NAME, control, api, gate, known_kinds)
            for name in names:
                await sync.create(name)
    assert sorted(member.namespaces) == sorted(names)
    assert all(namespace["metadata"]["labels"] for namespace in member.namespaces.values())
    assert gateway.requests == 1
