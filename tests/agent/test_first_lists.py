"""An agent before its first lists of the member's autoscalers, nodes and pods."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.agent import action_execution
from engine.bench import karmada_api
from tests.agent import in_process
from tests.agent.in_process import Gateway, Member, apply, key_of, running
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

Json = dict[str, Any]
_SOON_S = 0.3
_KINDS = {
    "/api/v1/nodes": ("", "Node", "nodes"),
    "/api/v1/pods": ("", "Pod", "pods"),
    "/apis/autoscaling/v2/horizontalpodautoscalers": (
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ),
}
_SCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"
_SCALER: Json = {
    "metadata": {"name": "web", "namespace": "default", "uid": "h1", "resourceVersion": "1"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


class Listing(Member):
    """A member with nodes, pods and autoscalers; a list of a path in ``held`` is answered once its event is set."""

    def __init__(self) -> None:
        super().__init__()
        self.items: dict[str, list[Json]] = {_SCALERS: [_SCALER]}
        self.held: dict[str, asyncio.Event] = {}
        self.refused: set[str] = set()
        self.group_status = 200
        """HTTP status of requests for the group of autoscalers; discovery omits the group unless it is 200."""

    def routes(self) -> list[Route]:
        own = [*(Route(path, self._kind) for path in _KINDS), Route("/apis/autoscaling/v2", self._scalers)]
        return [Route("/api", self._core), *own, *super().routes()]

    async def _kind(self, request: Request) -> Response:
        path = request.url.path
        if path in self.refused:
            return karmada_api.status(403, "Forbidden")
        if request.query_params.get("watch") == "true":
            return StreamingResponse(self._watch(len(self._changes)))
        if path in self.held:
            await self.held[path].wait()
        return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": self.items.get(path, [])})

    async def _scalers(self, _request: Request) -> Response:
        if self.group_status != 200:
            return karmada_api.status(self.group_status, "Fault")
        kind = {"kind": "HorizontalPodAutoscaler", "name": "horizontalpodautoscalers", "verbs": _VERBS}
        return JSONResponse({"groupVersion": "autoscaling/v2", "resources": [kind | {"namespaced": True}]})

    async def _core(self, _request: Request) -> Response:
        return in_process.discovery("", [("Node", "nodes", _VERBS), ("Pod", "pods", _VERBS)])

    async def _groups(self, _request: Request) -> Response:
        kinds = [("Deployment", "deployments", _VERBS)]
        groups: list[Json] = []
        for group, listed, version in (
            ("apps", kinds, "v1"),
            ("autoscaling", [("HorizontalPodAutoscaler", "horizontalpodautoscalers", _VERBS)], "v2"),
        ):
            answer = msgspec.json.decode(in_process.discovery(group, listed).body, type=Json)
            groups += answer["items"]
            groups[-1]["versions"][0]["version"] = version
        if self.group_status != 200:
            groups.pop()
        return JSONResponse({"kind": "APIGroupDiscoveryList", "items": groups})


_VERBS = ["list", "watch"]


def replicas(member: Member) -> int:
    return member.objects["web"]["spec"]["replicas"]


async def test_replicas_of_an_autoscaler_are_kept_after_a_restart(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.objects["web"]["spec"]["replicas"] = 9
    member.held[_SCALERS] = asyncio.Event()
    gateway.send("web", 2, 3)
    applied: list[int] = []

    async def note(_method: str, _name: str) -> None:
        await asyncio.sleep(0)
        applied.append(replicas(member))

    member.before_answer = note
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await asyncio.sleep(_SOON_S)
        member.held[_SCALERS].set()
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
    assert set(applied) == {9}


async def test_replicas_of_an_autoscaler_are_kept_although_discovery_omits_its_group(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.objects["web"]["spec"]["replicas"] = 9
    member.group_status = 503
    gateway.send("web", 2, 3)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await asyncio.sleep(_SOON_S)
        assert replicas(member) == 9
        member.group_status = 200
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
    assert replicas(member) == 9


@pytest.mark.parametrize("status", [403, 404])
async def test_works_are_applied_if_no_autoscalers_are_served(tmp_path: Path, status: int) -> None:
    gateway, member = Gateway(), Listing()
    member.group_status = status
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")


async def test_works_are_applied_without_the_right_to_list_autoscalers(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    member.refused.add(_SCALERS)
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")


async def test_works_that_wait_for_the_list_of_autoscalers_are_reported_and_do_not_delay_removals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_execution, "_AUTOSCALERS_S", _SOON_S)
    gateway, member = Gateway(), Listing()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("old", 1, 2)
        await until_async(lambda: key_of("old") in gateway.reports)
    member.held[_SCALERS] = asyncio.Event()
    names = [f"web{count}" for count in range(20)]
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        for name in names:
            gateway.send(name, 1, 2)
        gateway.send("old", 2, None)
        await until_async(lambda: gateway.gone and all(key_of(name) in gateway.reports for name in names), 5)
        assert all("HorizontalPodAutoscalers" in gateway.reports[key_of(name)].fault for name in names)
        assert not member.objects
        member.held[_SCALERS].set()
        await until_async(lambda: not any(gateway.reports[key_of(name)].fault for name in names))
    assert member.objects.keys() == set(names)


async def test_removed_work_is_not_applied_after_the_list_of_autoscalers(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    member.held[_SCALERS] = asyncio.Event()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        gateway.send("other", 1, 2)
        await asyncio.sleep(_SOON_S)
        gateway.send("web", 2, None)
        await asyncio.sleep(_SOON_S)
        member.held[_SCALERS].set()
        await until_async(lambda: gateway.gone and key_of("other") in gateway.reports)
    assert member.writes == [("PATCH", "other")]


async def test_capacity_is_reported_once_nodes_and_pods_are_listed(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4", "pods": "10"}}
    requests = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
    member.items["/api/v1/nodes"] = [{"metadata": {"name": "n"}, "status": ready}]
    member.items["/api/v1/pods"] = [
        {"metadata": {"name": "p", "uid": "p"}, "spec": {"nodeName": "n", "containers": requests}}
    ]
    for path in ("/api/v1/nodes", "/api/v1/pods"):
        member.held[path] = asyncio.Event()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        for path in ("/api/v1/nodes", "/api/v1/pods"):
            await asyncio.sleep(_SOON_S)
            assert not gateway.capacities
            member.held[path].set()
        await until_async(lambda: gateway.capacities)
    assert [(capacity.nodes, capacity.allocated["cpu"]) for capacity in gateway.capacities] == [(1, "3")]


async def test_capacity_is_reported_without_the_right_to_list_pods(tmp_path: Path) -> None:
    gateway, member = Gateway(), Listing()
    member.refused.add("/api/v1/pods")
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.capacities)
