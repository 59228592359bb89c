"""Saved plans: applied if they still hold, refused otherwise, and compared with what happened."""

import json
from pathlib import Path
from typing import Final

import httpx
import pytest

from engine.cli import client
from engine.http.plans.routes import PlanList
from events import tracing
from tests.cli.planned_objects import OBJECTS, placed, run, written
from tests.cli.servers import Shell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cleared")]

CONFIG_MAP: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: b}}"


def test_saved_plan_is_applied(shell: Shell, tmp_path: Path) -> None:
    objects, out = written(tmp_path / "objects.yaml", OBJECTS), tmp_path / "plan.json"
    shell("plan", "-f", objects, "-o", str(out), "--horizon", "5m", code=2)
    (change,) = json.loads(out.read_bytes())["prediction"]["changed"]
    shell.apply(CONFIG_MAP)
    assert shell("apply", "--plan", str(out)).splitlines() == [
        "propagationpolicy.policy.karmada.io/all created",
        "deployment.apps/web created",
    ]
    shell.until_true(lambda: bool(placed(shell) == change["after"]))


def test_applied_plan_is_checked_and_named_in_the_timeline(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", str(out), code=2)
    identity = json.loads(out.read_bytes())["id"]
    shell("plan", "check", str(out), code=1)
    assert "no record was caused by this plan" in shell.errors
    shell("apply", "--plan", str(out))
    shell.until_true(lambda: placed(shell) == {"member2": 5, "member3": 4})
    shell("apply", "--plan", str(out), code=1)
    assert "error: the plan was applied already, at number " in shell.errors
    # Later changes by other clients are not compared with the prediction.
    shell("scale", "deploy/web", "--replicas", "30")
    shell.until_true(lambda: sum(placed(shell).values()) == 30)
    shown = shell("plan", "check", str(out))
    assert "default/web-deployment" in shown
    assert shown.splitlines()[-1].startswith("1 of 1 workload is as predicted; placed within ")
    check = json.loads(shell("plan", "check", identity, "--json"))
    assert check["workloads"][0]["actual"] == {"member2": 5, "member3": 4}
    lines = shell("timeline", "deploy", "web").splitlines()
    planned = [line for line in lines if f"planned by {identity})" in line]
    assert any("eviction-started" in line for line in planned)
    assert not any("template-applied" in line for line in planned)
    saved = json.loads(out.read_bytes())
    saved["prediction"]["changed"] = []
    unexpected = written(tmp_path / "unexpected.json", json.dumps(saved))
    assert "member2:5, member3:4   differs" in shell("plan", "check", unexpected, code=2)
    shell("plan", "check", "nothing", code=1)
    assert "no plan with this id on the server" in shell.errors
    # Members may report on the plan's works after the later change.
    follow(shell, identity)
    assert "1 of 1 workload is as predicted" in shell("plan", "check", str(out))


def follow(shell: Shell, plan_id: str) -> None:
    """Write an annotation of the Deployment as a part of what follows from a plan."""
    endpoint = json.loads((shell.directory / "endpoint.json").read_bytes())
    trace = tracing.of_plan(plan_id)
    answer = httpx.patch(
        f"{endpoint['url']}/kubernetes/apis/apps/v1/namespaces/default/deployments/web",
        content=b'{"metadata": {"annotations": {"late": "true"}}}',
        headers={
            "authorization": f"Bearer {endpoint['token']}",
            "content-type": "application/merge-patch+json",
            "traceparent": trace.parent,
            "tracestate": trace.state,
        },
    )
    assert answer.status_code == 200


def test_plan_without_effect_is_checked(shell: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", out)
    assert shell("apply", "--plan", out) == "cluster/member1 configured\n"
    assert shell("plan", "check", out) == "Nothing moved, as predicted.\n"


def test_plan_is_refused_only_after_edits_of_its_basis(shell: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", out)
    shell("label", "cluster", "member1", "tier=gold")
    shell("taint", "member1", "other:NoSchedule")
    shell("apply", "--plan", out, code=1)
    assert "the plan no longer holds: member1 was edited since" in shell.errors
    shell("untaint", "member1", "other")
    assert shell("apply", "--plan", out) == "cluster/member1 configured\n"


def test_plan_that_no_longer_holds_is_refused(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    shell("plan", "scale", "deploy/web", "--replicas", "30", "-o", str(out), code=2)
    shell("taint", "member1", "maintenance:NoExecute")
    shell.until_true(lambda: "member1" not in placed(shell))
    shell("apply", "--plan", str(out), code=1)
    assert (
        "the plan no longer holds: default/web-deployment is in member2 (5), member3 (4) now" in shell.errors
    )
    assert "changed since the plan: cluster-tainted of member1 at number " in shell.errors
    assert sum(placed(shell).values()) == 9
    shell("plan", "scale", "deploy/web", "--replicas", "30", "-o", str(out), code=2)
    assert shell("apply", "--plan", str(out)) == "deployment.apps/web configured\n"
    shell.until_true(lambda: sum(placed(shell).values()) == 30)


def test_refusal_names_the_policy_that_changed_since(shell: Shell, tmp_path: Path) -> None:
    policy, workload = OBJECTS.split("---")
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    new = workload.replace("name: web", "name: api")
    shell("plan", "-f", written(tmp_path / "new.yaml", new), "-o", str(out), code=2)
    narrowed = f"{policy.rstrip()}\n    clusterAffinity: {{clusterNames: [member2]}}\n"
    shell.apply(narrowed)
    shell.until_true(lambda: "member1" not in placed(shell))
    shell("apply", "--plan", str(out), code=1)
    assert "policy-applied of propagationpolicy:default/all at number " in shell.errors


def test_plan_without_a_prediction_is_not_checked(shell: Shell) -> None:
    shell("plan", "fail", "nowhere", code=1)
    with client.Client(shell.directory) as http:
        identity = http.get("plans", PlanList).items[-1].id
    shell("plan", "check", identity, code=1)
    assert f"the plan {identity} failed: no simulated member is named 'nowhere'" in shell.errors
    shell("plan", "check", "x" * 300, code=1)
    assert "no plan with this id on the server" in shell.errors


def test_unusable_plans_are_refused(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    shell("apply", "--plan", str(out), code=1)
    out.write_text("{}")
    shell("apply", "--plan", str(out), code=1)
    assert "is not a plan" in shell.errors
    shell("apply", code=2)
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "fail", "member2", "-o", str(out), code=2)
    shell("apply", "--plan", str(out), code=1)
    assert "failing clusters can't be applied" in shell.errors
    shell("plan", "fail", "member2", "--horizon", "soon", code=1)
    assert "'soon' is not a duration" in shell.errors
