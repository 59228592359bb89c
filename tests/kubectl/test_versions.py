"""Every installed version of kubectl, not only the one on the PATH, in a typical session with a Deployment."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.servers import editor
from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.manifests import BOTH


def versions() -> Iterator[Path]:
    """Yield the kubectl on the PATH and its neighbours with names such as ``kubectl.1.27``."""
    program = shutil.which("kubectl")
    if program is not None:
        real = Path(program).resolve()
        yield from sorted({real, *real.parent.glob("kubectl.1.[0-9]*")})


VERSIONS: Final = list(versions())


@pytest.mark.slow  # about forty programs, one after the other
@pytest.mark.parametrize("program", VERSIONS, ids=lambda path: path.name)
def test_kubectl_version_runs_a_typical_session(
    control_plane_on_sqlite: ControlPlane,
    home_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: Path,
) -> None:
    name = f"versions-{program.name.replace('.', '-')}"
    kubectl = Kubectl(control_plane_on_sqlite.reading, home_directory / name, name, program=str(program))
    kubectl("create", "namespace", name)
    try:
        _work(kubectl, tmp_path, monkeypatch)
    finally:
        kubectl("delete", "namespace", name)


def _work(kubectl: Kubectl, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kubectl("create", "deployment", "made", "--image", "nginx") == "deployment.apps/made created\n"
    kubectl("create", "configmap", "settings", "--from-literal", "a=b")
    assert kubectl("apply", "-f", "-", stdin=BOTH).splitlines() == [
        "deployment.apps/web created",
        "propagationpolicy.policy.karmada.io/web created",
    ]
    kubectl.until(
        ["NAME READY UP-TO-DATE AVAILABLE", "made 0/1 0 0", "web 3/3 3 3"],
        "deploy",
    )
    assert "deployment.apps/web unchanged" in kubectl("apply", "-f", "-", stdin=BOTH)
    more = BOTH.replace("replicas: 3", "replicas: 4")
    assert "deployment.apps/web configured" in kubectl("apply", "-f", "-", stdin=more)
    assert kubectl("diff", "-f", "-", stdin=more) == ""
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=more).count("applied") == 2
    monkeypatch.setenv("KUBE_EDITOR", editor(folder, "text.replace('replicas: 4', 'replicas: 2')"))
    assert kubectl("edit", "deploy", "web") == "deployment.apps/web edited\n"
    assert kubectl("rollout", "status", "deploy", "web", "--timeout", "60s").endswith("rolled out\n")
    result = "Binding has been scheduled successfully. Result: {member1:"
    assert result in kubectl("describe", "deploy", "web")
    assert "replicaScheduling" in kubectl("explain", "propagationpolicy.spec.placement")
    assert kubectl("auth", "can-i", "create", "deployments") == "yes\n"
    _autoscale(kubectl)
    assert kubectl("delete", "deploy", "web", "made").count("deleted") == 2
    assert kubectl("get", "deploy", "-o", "name") == ""


def _autoscale(kubectl: Kubectl) -> None:
    """Older versions write autoscaling/v1, and all read autoscaling/v2: it is one object."""
    kubectl("autoscale", "deploy", "made", "--min=2", "--max=5", "--cpu-percent=70")
    head, row = (line.split() for line in kubectl("get", "hpa").splitlines())
    assert head == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row[:-1] == ["made", "Deployment/made", "cpu:", "<unknown>/70%", "2", "5", "0"]
    old = "horizontalpodautoscalers.v1.autoscaling/made"
    v1_fields = "-o=jsonpath={.apiVersion} {.spec.targetCPUUtilizationPercentage}"
    assert kubectl("get", old, v1_fields) == "autoscaling/v1 70"
    v2_fields = "-o=jsonpath={.apiVersion} {.spec.metrics[*].resource.target.averageUtilization}"
    assert kubectl("get", "horizontalpodautoscalers.v2.autoscaling/made", v2_fields) == "autoscaling/v2 70"
    kubectl("patch", old, "--type=merge", "-p", '{"spec":{"targetCPUUtilizationPercentage":60}}')
    assert kubectl("get", "hpa/made", v2_fields) == "autoscaling/v2 60"
    memory = '{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}'
    added = f'[{{"op":"add","path":"/spec/metrics/0","value":{memory}}}]'
    kubectl("patch", "hpa", "made", "--type=json", "-p", added)
    kubectl("patch", old, "--type=merge", "-p", '{"spec":{"maxReplicas":6}}')
    assert (
        kubectl("get", "hpa/made", "-o=jsonpath={.spec.maxReplicas} {.spec.metrics[*].resource.name}")
        == "6 memory cpu"
    )
    assert kubectl("delete", old) == 'horizontalpodautoscaler.autoscaling "made" deleted\n'
