"""``shadow explain`` of a decision that `reballast scheduler` made."""

import asyncio
from pathlib import Path

import pytest

from engine.bench.karmada_api import binding, divided
from engine.cli import main
from engine.log import sqlite
from tests.observer.observing import newest_versions
from tests.scheduler.api import serving
from tests.scheduler.scheduling import karmada, scheduled, scheduling
from tests.waiting import until_async

ROLE = {
    "metadata": {
        "name": "web-clusterrole",
        "labels": {"clusterpropagationpolicy.karmada.io/permanent-id": "an-id"},
    },
    "spec": {
        "resource": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": "web",
            "uid": "u",
        },
        "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        "schedulerName": "reballast",
    },
}


async def written(directory: Path) -> None:
    """Write the log of a scheduler that has decided on two bindings."""
    plane, log = karmada(), await sqlite.SqliteLog.open(directory)
    async with serving(plane) as access, scheduling(access, log):
        plane.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        plane.put("clusterresourcebindings", ROLE)
        await until_async(lambda: scheduled(plane, "web") == "Success")
        role = ("clusterresourcebindings", "", "web-clusterrole")
        await until_async(lambda: bool(plane.objects[role].get("status", {}).get("conditions")))
        version = plane.objects["resourcebindings", "default", "web-deployment"]["metadata"][
            "resourceVersion"
        ]
        role_version = plane.objects[role]["metadata"]["resourceVersion"]
        for key, newest in (
            (("ResourceBinding", "default", "web-deployment"), version),
            (("ClusterResourceBinding", "", "web-clusterrole"), role_version),
        ):
            while (await newest_versions(log))[key] != int(newest):
                await log.wait(log.last_number())
    await log.aclose()


def test_own_decision_is_explained_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(written(tmp_path))
    assert main.run(["shadow", "explain", "deploy", "web", "--log", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "by reballast scheduler" in shown
    assert "Placed:    member1: 2, member2: 2" in shown
    assert "Verdict" not in shown
    assert main.run(["shadow", "explain", "clusterrole", "web", "--log", str(tmp_path)]) == 0
    assert "Binding:   web-clusterrole" in capsys.readouterr().out
