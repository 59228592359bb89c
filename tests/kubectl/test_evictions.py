"""Graceful eviction tasks with purge mode Never: kubectl lifts ``suppressDeletion``, as with Karmada."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from engine.domain import marks
from tests.cli.failover_objects import FAILOVER, WEB
from tests.cli.servers import Shell
from tests.kubectl.commands import Kubectl

KEPT: Final = (WEB + FAILOVER.replace("Directly", "Never")).replace(", namespace: default", "")
"""A workload that is kept where it fails, however it is elsewhere."""

TASKS: Final = "jsonpath={range .spec.gracefulEvictionTasks[*]}{.fromCluster} {.suppressDeletion}{end}"
RUNS: Final = "jsonpath={.status.aggregatedStatus[*].clusterName}"
SUPPRESS: Final = '[{"op": "%s", "path": "/spec/gracefulEvictionTasks/0/suppressDeletion", "value": %s}]'
BINDING: Final = ("rb", "web-deployment")
MEMBERS: Final = ("member1", "member2")
IMAGE: Final = "jsonpath={%s.spec.template.spec.containers[0].image}"


@pytest.fixture
def evicted(served: Path, capsys: pytest.CaptureFixture[str], kubectl: Kubectl) -> Iterator[None]:
    """A workload that is being evicted from member1, where it does not become ready, and is kept there."""
    shell = Shell(served, capsys)
    shell("fault", "member1", "slow", "--amount", "100000")
    try:
        kubectl("apply", "-f", "-", stdin=KEPT)
        kubectl.until_true(
            lambda: kubectl("get", *BINDING, "-o", TASKS, code=None) == "member1 true",
            lambda: kubectl("get", *BINDING, "-o", "yaml"),
        )
        yield
    finally:
        shell("heal", "member1")


@pytest.mark.slow
@pytest.mark.usefixtures("evicted")
def test_suppressed_eviction_is_completed_once_deletion_is_allowed(kubectl: Kubectl) -> None:
    assert kubectl("get", *BINDING, "-o", RUNS) == "member1 member2"

    patch = ("patch", *BINDING, "--type=json", "-p")
    for wrong in (
        '[{"op": "remove", "path": "/spec/gracefulEvictionTasks"}]',
        '[{"op": "replace", "path": "/spec/clusters", "value": []}]',
        SUPPRESS % ("replace", '"no"'),
    ):
        kubectl(*patch, wrong, code=1)
    assert "suppressDeletion to false" in kubectl.errors
    kubectl(*patch, SUPPRESS % ("replace", "false"), "--dry-run=server")
    kubectl(*patch, SUPPRESS % ("replace", "true"))
    assert kubectl("get", *BINDING, "-o", TASKS) == "member1 true"

    patched = kubectl(*patch, SUPPRESS % ("replace", "false"))
    assert patched == "resourcebinding.work.karmada.io/web-deployment patched\n"
    kubectl.until_true(
        lambda: (
            kubectl("get", *BINDING, "-o", TASKS) == "" and kubectl("get", *BINDING, "-o", RUNS) == "member2"
        ),
        lambda: kubectl("get", *BINDING, "-o", "yaml"),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("evicted")
def test_edit_during_an_eviction_leaves_the_evicted_copy_and_its_work_as_they_are(kubectl: Kubectl) -> None:
    kubectl("set", "image", "deploy/web", "main=nginx:2")

    name, of_work = (
        marks.work_name("Deployment", kubectl.namespace, "web"),
        IMAGE % ".spec.workload.manifests[0]",
    )
    works = [("get", "works", "-n", f"karmada-es-{member}", name, "-o", of_work) for member in MEMBERS]
    kubectl.until_true(
        lambda: [kubectl(*words) for words in works] == ["nginx", "nginx:2"],
        lambda: kubectl(*works[0]) + kubectl(*works[1]),
    )
    copies = [kubectl.on(member)("get", "deploy", "web", "-o", IMAGE % "") for member in MEMBERS]
    assert copies == ["nginx", "nginx:2"]
