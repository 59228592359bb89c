"""Faults of a member's API: clients get them, propagation and the collection of statuses continue."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.servers import Shell
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH


@pytest.fixture
def shell(served: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    shell = Shell(served, capsys)
    yield shell
    shell("heal", "member1")


def test_lagging_api_responds_late_and_throttled_api_with_retry_after(shell: Shell, kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    member("get", "namespaces")
    assert "lagging (1200 ms)" in shell("fault", "member1", "lagging", "--amount", "1200")
    began_s = time.monotonic()
    member("get", "namespace", "default")
    assert time.monotonic() - began_s > 1.2
    shell("heal", "member1")
    shell("fault", "member1", "throttled", "--amount", "2")
    for _ in range(4):
        member("get", "namespace", "default")


def test_failing_api_refuses_requests_while_workloads_are_propagated(shell: Shell, kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    shell("fault", "member1", "failing", "--amount", "1")
    member("get", "namespace", "default", code=1)
    assert "ServiceUnavailable" in member.errors
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy", "web")
    assert "member1" not in kubectl("top", "pods", code=None)
    shell("heal", "member1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy", "web")
