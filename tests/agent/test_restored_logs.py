"""The control plane's log was restored from a backup: the agent's works are from the part that the restore lost."""

from pathlib import Path

import pytest

from tests.agent.in_process import Gateway, Member, key_of, running
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


async def member_of_lost_part(directory: Path) -> Member:
    """Return a member whose agent has applied the work of step 20, with 5 replicas, and has stored its checkpoint."""
    gateway, member = Gateway(), Member()
    async with running(gateway, member, directory / "agent.sqlite"):
        gateway.send("web", 20, 5)
        await until_async(lambda: key_of("web") in gateway.reports)
    return member


async def test_listed_work_replaces_a_newer_one_of_a_lost_part_of_the_log(tmp_path: Path) -> None:
    member = await member_of_lost_part(tmp_path)
    restored = Gateway()
    restored.add_to_list("web", 10, 2)
    async with running(restored, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: member.objects["web"]["spec"]["replicas"] == 2)
        await until_async(lambda: (report := restored.reports.get(key_of("web"))) and report.step == 10)


async def test_work_is_applied_although_the_lost_part_of_the_log_had_a_newer_one(tmp_path: Path) -> None:
    member = await member_of_lost_part(tmp_path)
    restored = Gateway()
    async with running(restored, member, tmp_path / "agent.sqlite"):
        await until_async(lambda: not member.objects)
        restored.send("web", 15, 2)
        await until_async(lambda: (report := restored.reports.get(key_of("web"))) and report.step == 15)
    assert member.objects["web"]["spec"]["replicas"] == 2
