"""Plans on both logs: a change that is planned with ``reballast plan`` and made with kubectl comes out as predicted."""

import json
import re
import subprocess
import sys
from typing import Any

from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.manifests import BOTH


def predicted(control_plane: ControlPlane, *words: str) -> Any:  # noqa: ANN401  # JSON
    """Return the prediction of ``reballast plan``, which must find changes."""
    directory = str(control_plane.reading.parent)
    command = [sys.executable, "-m", "engine.cli", "plan", *words, "--data", directory, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stdout + done.stderr
    return json.loads(done.stdout)["prediction"]


def placed(kubectl: Kubectl) -> dict[str, int]:
    """Return the clusters of the Deployment, with their replicas."""
    spec: Any = kubectl.json("rb", "web-deployment")["spec"]
    return {target["name"]: target["replicas"] for target in spec.get("clusters", [])}


def test_planned_change_comes_out_as_predicted(kubectl: Kubectl, control_plane: ControlPlane) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    before = placed(kubectl)
    prediction = predicted(control_plane, "scale", "deploy/web", "--replicas", "12", "-n", kubectl.namespace)
    (change,) = prediction["changed"]
    assert (change["before"], placed(kubectl)) == (before, before)
    assert (change["readyAfter"], change["started"], change["stopped"]) == (12, 9, 0)
    kubectl("scale", "deploy", "web", "--replicas=12")
    kubectl.until_true(lambda: bool(placed(kubectl) == change["after"]), lambda: str(placed(kubectl)))


def test_dry_run_of_an_annotated_object_warns_of_its_effect(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    kubectl("annotate", "deploy", "web", "reballast.io/plan=true")
    kubectl("patch", "deploy", "web", "--dry-run=server", "-p", '{"spec": {"replicas": 12}}')
    effect = r"Warning: plan: 1 of .*, 0 replicas to stop, 9 to start; stable after \d+ ms\."
    assert re.search(effect, kubectl.errors)
    kubectl("patch", "deploy", "web", "-p", '{"spec": {"replicas": 4}}')
    assert "plan" not in kubectl.errors
    kubectl("annotate", "deploy", "web", "reballast.io/plan-")
    kubectl("patch", "deploy", "web", "--dry-run=server", "-p", '{"spec": {"replicas": 12}}')
    assert "plan" not in kubectl.errors
