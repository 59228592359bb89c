"""Objects that exist in a member before its agent applies a work: left alone, or overwritten on request."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.domain import marks
from tests.agent.in_process import NAME, Gateway, Member, apply, key_of, running, work
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

OTHER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 7},
}


def conflict() -> str:
    template = work("web", 1, 2).template
    assert template is not None
    return marks.conflict(template, NAME)


@pytest.mark.parametrize(
    "marked",
    [
        {},
        {"labels": {marks.MANAGED: "true"}},
        {"annotations": {marks.WORK_NAMESPACE: marks.work_namespace(NAME)}},
        {
            "labels": {marks.MANAGED: "true"},
            "annotations": {marks.WORK_NAMESPACE: marks.work_namespace("two")},
        },
    ],
)
async def test_object_of_others_is_neither_changed_nor_removed(
    marked: dict[str, object], tmp_path: Path
) -> None:
    gateway, member = Gateway(), Member()
    member.create({**OTHER, "metadata": {**OTHER["metadata"], **marked}})
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        assert gateway.reports[key_of("web")].fault == conflict()
        gateway.send("web", 2, None)
        await until_async(lambda: gateway.gone)
    assert member.writes == []
    assert member.objects["web"]["spec"] == {"replicas": 7}


async def test_object_that_another_client_created_again_is_not_changed_by_later_works(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        member.delete("web")
        member.create(OTHER)
        await until_async(lambda: gateway.reports[key_of("web")].fault == conflict())
        gateway.send("web", 2, 3)
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
        assert gateway.reports[key_of("web")].fault == conflict()
    assert member.objects["web"]["spec"] == {"replicas": 7}


async def test_object_that_another_client_created_while_the_agent_was_down_is_not_changed(
    tmp_path: Path,
) -> None:
    gateway, member = Gateway(), Member()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.delete("web")
    member.create(OTHER)
    gateway.send("web", 2, 3)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
        assert gateway.reports[key_of("web")].fault == conflict()
    assert member.objects["web"]["spec"] == {"replicas": 7}


async def test_object_whose_marks_another_client_removed_is_removed_with_its_workload(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.create(OTHER)
    gateway.send("web", 2, None)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.gone)
    assert member.objects == {}


async def test_object_of_others_is_overwritten_on_request_and_then_removed(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    gateway.overwrites = True
    member.create(OTHER)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        assert gateway.reports[key_of("web")].fault == ""
        assert member.objects["web"]["spec"] == {"replicas": 2}
        assert member.forced == [True]
        gateway.send("web", 2, None)
        await until_async(lambda: gateway.gone)
    assert member.objects == {}


async def test_object_that_the_agent_has_marked_is_applied_after_the_loss_of_its_checkpoint(
    tmp_path: Path,
) -> None:
    gateway, member = Gateway(), Member()
    for number, replicas in enumerate((2, 3), start=1):
        async with running(gateway, member, tmp_path / f"agent-{number}.sqlite"):
            gateway.send("web", number, replicas)
            await until_async(
                lambda number=number: getattr(gateway.reports.get(key_of("web")), "step", 0) == number
            )
        assert gateway.reports[key_of("web")].fault == ""
        assert member.objects["web"]["spec"] == {"replicas": replicas}


async def test_only_an_object_that_exists_is_applied_by_force(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    assert member.forced == [False]
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        # After a restart the agent reads the object first, and later it does not.
        for step in (2, 3):
            gateway.send("web", step, step + 1)
            await until_async(lambda step=step: gateway.reports[key_of("web")].step == step)
    assert member.forced == [False, True, True]


async def test_object_whose_marks_another_client_removed_gets_them_again_at_once(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        await asyncio.sleep(1)
        member.remove_marks("web")
        await until_async(lambda: "labels" in member.objects["web"]["metadata"])
        member.run_all("web")
        await until_async(lambda: gateway.reports[key_of("web")].ready == 2)
        await asyncio.sleep(100)
    assert member.forced == [False, True], "it is applied once"


async def test_object_whose_marks_another_client_removed_gets_them_with_the_next_work(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    await apply(gateway, member, tmp_path / "agent.sqlite", "web")
    member.remove_marks("web")
    gateway.send("web", 2, 3)
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
    assert gateway.reports[key_of("web")].fault == ""
    assert member.objects["web"]["spec"] == {"replicas": 3}
    assert member.objects["web"]["metadata"]["labels"] == {marks.MANAGED: "true"}


async def test_replicas_of_a_template_that_leaves_them_to_the_member_are_not_applied_again(
    tmp_path: Path,
) -> None:
    gateway, member = Gateway(), Member()
    gateway.metadata = {"labels": {marks.RETAIN_REPLICAS: "true"}}
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        member.take_over("web", 7)
        await asyncio.sleep(1)
        assert len(member.forced) == 1, "it is no drift"
        gateway.send("web", 2, 3)
        await until_async(lambda: gateway.reports[key_of("web")].step == 2)
    assert "replicas" not in member.objects["web"]["spec"], "another client owns them"


async def test_template_that_cannot_be_rendered_is_reported_and_removes_nothing(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
        gateway.manifest_fault = "an override fails"
        gateway.send("web", 2, 3)
        await until_async(lambda: gateway.reports[key_of("web")].fault == "an override fails")
    assert member.objects["web"]["spec"] == {"replicas": 2}


async def test_manifest_of_another_object_is_not_applied(tmp_path: Path) -> None:
    gateway, member = Gateway(), Member()
    gateway.metadata = {"name": "another"}
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        await until_async(lambda: key_of("web") in gateway.reports)
    assert "of another object than the template" in gateway.reports[key_of("web")].fault
    assert member.objects == {}
