"""The rebalancer's tutorial with kubectl, and the output that it shows; kubectl sends karmadactl's patches."""

from pathlib import Path

import pytest
import yaml

from tests.cli.servers import editor
from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.members import until_idle
from tests.seeds.users import MANIFESTS, text

pytestmark = pytest.mark.slow

TIMES = ("creationTimestamp", "finishTime")
ADDED = ("resourceVersion", "uid")
HEADER = "NAME READY UP-TO-DATE AVAILABLE"
TAINT = '{"spec":{"taints":[{"effect":"NoExecute","key":"workload-rebalancer-test"}]}}'


def test_tutorial_prints_the_output_that_it_shows(
    control_plane: ControlPlane, home_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = control_plane.kubectl(home_directory, context="karmada-apiserver")
    until_idle(kubectl)
    try:
        _follow(kubectl, tmp_path, monkeypatch)
    finally:
        for reference in ("workloadrebalancer/demo", "deployment/foo", "propagationpolicy/default-pp"):
            kubectl("delete", reference)


def _follow(kubectl: Kubectl, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Step 1
    applied = kubectl("apply", "-f", str(MANIFESTS / "tutorial" / "deployment.yaml"))
    assert applied.splitlines() == [
        "deployment.apps/foo created",
        "propagationpolicy.policy.karmada.io/default-pp created",
    ]
    _placed(kubectl, member1="foo 2/2 2 2", member2="foo 1/1 1 1")

    # Step 2
    kubectl("patch", "cluster", "member1", "--type=merge", "-p", TAINT)
    _placed(kubectl, member2="foo 3/3 3 3")
    kubectl("patch", "cluster", "member1", "--type=merge", "-p", '{"spec":{"taints":null}}')
    assert kubectl.on("member1").table("deploy") == []

    # Steps 3 and 4
    manifest = str(MANIFESTS / "tutorial" / "workload-rebalancer.yaml")
    created = kubectl("apply", "-f", manifest)
    assert created == "workloadrebalancer.apps.karmada.io/demo created\n"
    waited = ("wait", "--for=jsonpath={.status.finishTime}", "workloadrebalancer/demo", "--timeout=60s")
    kubectl(*waited)
    shown = kubectl("get", "workloadrebalancer", "demo", "-o", "yaml")
    assert _timeless(shown) == _timeless(text("tutorial/status"))

    # Step 5
    _placed(kubectl, member1="foo 2/2 2 2", member2="foo 1/1 1 1")
    described = kubectl("describe", "deploy", "foo")
    result = "Binding has been scheduled successfully. Result: {member1:2, member2:1}"
    assert any("ScheduleBindingSucceed" in line and result in line for line in described.splitlines())

    # Step 6
    more = editor(folder, "text.replace('spec:', 'spec:\\n  ttlSecondsAfterFinished: 300')")
    monkeypatch.setenv("KUBE_EDITOR", more)
    edited = kubectl("edit", "workloadrebalancer", "demo")
    assert edited == "workloadrebalancer.apps.karmada.io/demo edited\n"
    after = yaml.safe_load(kubectl("get", "workloadrebalancer", "demo", "-o", "yaml"))
    assert after["spec"] == yaml.safe_load(text("tutorial/workload-rebalancer-ttl"))["spec"]


def _placed(kubectl: Kubectl, **members: str) -> None:
    """Wait until the Deployment has exactly these rows in these members."""
    for name in ("member1", "member2", "member3"):
        rows = [HEADER, members[name]] if name in members else []
        kubectl.on(name).until(rows, "deploy")


def _timeless(shown: str) -> list[str]:
    """Return the lines without times, server-set fields and kubectl's annotation."""
    value = yaml.safe_load(shown)
    value["metadata"].pop("annotations", None)
    for name in ADDED:
        value["metadata"].pop(name, None)
    lines = yaml.safe_dump(value).splitlines()
    return [line.partition("'")[0] if line.strip().partition(":")[0] in TIMES else line for line in lines]
