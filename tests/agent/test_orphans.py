"""Objects with our marks that no work names, of a kind whose list fails: its conversion webhook does not respond."""

import asyncio
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.agent import messages
from engine.agent.checkpoint import Checkpoint
from engine.bench import karmada_api
from engine.domain import marks
from tests.agent import in_process
from tests.agent.in_process import NAME, Gateway, Json, Member, key_of, running
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

_WIDGETS = "/apis/example.org/v1/widgets"
_WIDGET = "/apis/example.org/v1/namespaces/default/widgets/left"

with_either_checkpoint = pytest.mark.parametrize(
    "checkpoint", ["agent.sqlite", "new.sqlite"], ids=["without position", "lost"]
)
"""For an agent that starts again: with the checkpoint of the former run, which lacks a position, or without any."""


class Broken(Member):
    """A member with a widget that an agent without its checkpoint finds; its list fails while ``is_broken``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = True
        self.fault: tuple[int, str] = (500, "InternalError")
        self.lists = 0
        self.widget: Json | None = {
            "metadata": {
                "name": "left",
                "namespace": "default",
                "uid": "w1",
                "labels": {marks.MANAGED: "true"},
                "annotations": {marks.WORK_NAMESPACE: marks.work_namespace(NAME)},
                "managedFields": [in_process.OWNED],
            }
        }

    def routes(self) -> list[Route]:
        own = [Route(_WIDGETS, self._widgets), Route(_WIDGET, self._get_widget, methods=["GET", "DELETE"])]
        return [*own, *super().routes()]

    async def _widgets(self, _request: Request) -> Response:
        self.lists += 1
        if self.is_broken:
            return karmada_api.status(*self.fault)
        items = [] if self.widget is None else [self.widget]
        return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": items})

    async def _get_widget(self, request: Request) -> Response:
        widget = self.widget
        if request.method == "DELETE":
            self.widget = None
        return karmada_api.status(404, "NotFound") if widget is None else JSONResponse(widget)

    async def _groups(self, _request: Request) -> Response:
        kinds = {"example.org": ("Widget", "widgets"), "apps": ("Deployment", "deployments")}
        return in_process.groups({group: [(*kind, ["list", "watch"])] for group, kind in kinds.items()})


async def apply(member: Member, directory: Path, *names: str) -> None:
    """Let an agent apply the works of these workloads. It does not store its position if it searches."""
    await in_process.apply(Gateway(), member, directory / "agent.sqlite", *names, continues_s=0.1)


@pytest.mark.parametrize("fault", [(500, "InternalError"), (401, "Unauthorized")])
async def test_works_are_applied_although_the_list_of_a_kind_fails(
    tmp_path: Path, fault: tuple[int, str]
) -> None:
    gateway, member = Gateway(), Broken()
    member.fault = fault
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        await until_async(lambda: member.lists > 1)
        assert member.widget is not None
        member.is_broken = False
        await until_async(lambda: member.widget is None)


async def test_objects_without_a_work_are_found_after_a_restart(tmp_path: Path) -> None:
    member = Broken()
    await apply(member, tmp_path, "web")
    member.is_broken = False
    async with running(Gateway(), member, tmp_path / "agent.sqlite"):
        await until_async(lambda: member.widget is None)


async def test_objects_that_karmada_applied_are_not_removed(tmp_path: Path) -> None:
    gateway, member = Gateway(), Broken()
    member.is_broken = False
    assert member.widget is not None
    member.widget["metadata"]["managedFields"] = [{**in_process.OWNED, "manager": "karmada"}]
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports and member.lists > 0)
    # Without a search for orphans, a later agent continues at the stored position.
    async with running(gateway, member, tmp_path / "new.sqlite"):
        await until_async(lambda: member.lists > 1)
    assert member.widget is not None


async def test_position_is_stored_once_everything_that_was_missed_is_removed(tmp_path: Path) -> None:
    async def position() -> int | None:
        kept = await asyncio.to_thread(Checkpoint, tmp_path / "agent.sqlite")
        stored, _ = await asyncio.to_thread(kept.load, NAME)
        await asyncio.to_thread(kept.close)
        return stored

    member, leaving = Broken(), Gateway()
    await apply(member, tmp_path, "web")
    assert await position() is None
    member.is_broken = False
    async with running(leaving, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: member.widget is None and "web" not in member.objects)
        await until_async(lambda: leaving.gone)
    assert await position() is not None


class WithoutApps(Member):
    """A member that no longer serves Deployments once ``is_stale`` is set: their definition is removed."""

    def routes(self) -> list[Route]:
        return [Route("/apis/apps/v1", self._missing), *super().routes()]

    async def _missing(self, _request: Request) -> Response:
        return karmada_api.status(404, "NotFound")


async def test_removal_is_reported_although_the_member_no_longer_serves_the_kind(tmp_path: Path) -> None:
    gateway, member = Gateway(), WithoutApps()
    await in_process.apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.is_stale = True
    gateway.send("web", 2, None)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.gone)
    assert member.writes == [("PATCH", "web")]


async def test_removal_is_reported_once_the_object_of_a_forgotten_work_is_removed(tmp_path: Path) -> None:
    member = Member()
    await apply(member, tmp_path, "web")
    leaving = Gateway()
    leaving.send("web", 2, None)
    leaving.send("never", 3, None)
    async with running(leaving, member, tmp_path / "new.sqlite"):
        await until_async(lambda: any(removal.key == key_of("web") for removal in leaving.gone))
        assert not member.objects
        removals = {(key_of("web"), 2), (key_of("never"), 3)}
        await until_async(lambda: {(removal.key, removal.step) for removal in leaving.gone} >= removals)


@with_either_checkpoint
async def test_workload_is_preserved_although_the_agent_missed_its_removal(
    checkpoint: str, tmp_path: Path
) -> None:
    member = Broken()
    await apply(member, tmp_path, "web")
    later, member.is_broken = Gateway(), False
    removal = messages.Work(key=key_of("web"), state="removed", term=1, step=2, preserved=True)
    later.newest[removal.key] = removal
    async with running(later, member, tmp_path / checkpoint):
        await until_async(
            lambda: any((report.key, report.step) == (removal.key, removal.step) for report in later.gone)
        )
    assert not member.objects["web"]["metadata"]["labels"][marks.MANAGED]


@with_either_checkpoint
async def test_workload_that_is_placed_again_after_the_list_is_not_removed(
    checkpoint: str, tmp_path: Path
) -> None:
    member = Broken()
    await apply(member, tmp_path, "web")
    later, member.is_broken = Gateway(), False
    later.newest[key_of("web")] = in_process.work("web", 3, 2)
    async with running(later, member, tmp_path / checkpoint):
        await until_async(lambda: (report := later.reports.get(key_of("web"))) and report.step == 3)
    assert ("DELETE", "web") not in member.writes


@with_either_checkpoint
async def test_no_object_is_removed_while_a_proxy_answers_for_the_control_plane(
    checkpoint: str, tmp_path: Path
) -> None:
    member = Broken()
    await apply(member, tmp_path, "web")
    later, member.is_broken, member.widget = Gateway(), False, None
    later.work_faults = [404, 404]
    async with running(later, member, tmp_path / checkpoint):
        await until_async(lambda: ("DELETE", "web") in member.writes)
    assert not later.work_faults


@with_either_checkpoint
async def test_object_is_removed_although_the_work_of_another_is_not_known(
    checkpoint: str, tmp_path: Path
) -> None:
    member = Broken()
    await apply(member, tmp_path, "api", "web")
    later, member.is_broken, member.widget = Gateway(), False, None
    later.unreadable.add(key_of("api"))
    async with running(later, member, tmp_path / checkpoint):
        await until_async(lambda: ("DELETE", "web") in member.writes)
        assert "api" in member.objects
        later.unreadable.clear()
        await until_async(lambda: ("DELETE", "api") in member.writes)


async def test_object_that_a_restore_of_the_member_brings_back_is_removed(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        for name in ("api", "web"):
            gateway.send(name, 1, 2)
        await until_async(lambda: len(gateway.reports) == 2)
        await asyncio.sleep(0.1)
        restore = member.backup()
        gateway.send("web", 2, None)
        await until_async(lambda: gateway.gone)
        restore()
        assert "web" in member.objects
        await until_async(lambda: "web" not in member.objects)
        assert "api" in member.objects
