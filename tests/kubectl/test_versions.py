"""Each version of kubectl that the machine has, beside the one on the PATH: a day's work with a Deployment."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.servers import editor
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH
from tests.kubectl.places import Place


def versions() -> Iterator[Path]:
    """The one on the PATH, and those that lie beside it as ``kubectl.1.27``."""
    found = shutil.which("kubectl")
    if found is not None:
        real = Path(found).resolve()
        yield from sorted({real, *real.parent.glob("kubectl.1.[0-9]*")})


VERSIONS: Final = list(versions())


@pytest.mark.parametrize("program", VERSIONS, ids=lambda path: path.name)
def test_a_days_work(
    place_on_sqlite: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Path
) -> None:
    name = f"versions-{program.name.replace('.', '-')}"
    kubectl = Kubectl(place_on_sqlite.reading, home / name, name, program=str(program))
    kubectl("create", "namespace", name)
    try:
        _work(kubectl, tmp_path, monkeypatch)
    finally:
        kubectl("delete", "namespace", name)


def _work(kubectl: Kubectl, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kubectl("create", "deployment", "made", "--image", "nginx") == "deployment.apps/made created\n"
    kubectl("create", "configmap", "settings", "--from-literal", "a=b")
    assert kubectl("apply", "-f", "-", given=BOTH).splitlines() == [
        "deployment.apps/web created",
        "propagationpolicy.policy.karmada.io/web created",
    ]
    kubectl.until(
        ["NAME READY UP-TO-DATE AVAILABLE", "made 0/1 0 0", "web 3/3 3 3"],
        "deploy",
    )
    assert "deployment.apps/web unchanged" in kubectl("apply", "-f", "-", given=BOTH)
    more = BOTH.replace("replicas: 3", "replicas: 4")
    assert "deployment.apps/web configured" in kubectl("apply", "-f", "-", given=more)
    assert kubectl("diff", "-f", "-", given=more) == ""
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=more).count("applied") == 2
    monkeypatch.setenv("KUBE_EDITOR", editor(folder, "text.replace('replicas: 4', 'replicas: 2')"))
    assert kubectl("edit", "deploy", "web") == "deployment.apps/web edited\n"
    assert kubectl("rollout", "status", "deploy", "web", "--timeout", "60s").endswith("rolled out\n")
    result = "Binding has been scheduled successfully. Result: {member1:"
    assert result in kubectl("describe", "deploy", "web")
    assert "replicaScheduling" in kubectl("explain", "propagationpolicy.spec.placement")
    assert kubectl("auth", "can-i", "create", "deployments") == "yes\n"
    assert kubectl("delete", "deploy", "web", "made").count("deleted") == 2
    assert kubectl("get", "deploy", "-o", "name") == ""
