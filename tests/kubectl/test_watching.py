"""get --watch, wait, and deletions with --wait."""

from pathlib import Path

from tests.cli.servers import without_ages
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH


def test_watch_prints_each_change_and_the_deletion(kubectl: Kubectl, tmp_path: Path) -> None:
    with kubectl.watching(tmp_path, "cm", "-o", "name") as printed:
        # The list comes first: it would contain "one" if that was created before.
        kubectl.until_true(lambda: printed.read_text() == "configmap/kube-root-ca.crt\n", printed.read_text)
        kubectl("create", "configmap", "one")
        kubectl("label", "cm", "one", "a=b")
        kubectl("delete", "cm", "one")
        expected = ["configmap/kube-root-ca.crt", *["configmap/one"] * 3]
        kubectl.until_true(lambda: printed.read_text().splitlines() == expected, printed.read_text)


def test_watch_prints_status_changes(kubectl: Kubectl, tmp_path: Path) -> None:
    with kubectl.watching(tmp_path, "deploy") as printed:
        kubectl("apply", "-f", "-", stdin=BOTH)
        kubectl.until_true(lambda: "web 3/3 3 3" in without_ages(printed.read_text()), printed.read_text)
        kubectl("scale", "deploy", "web", "--replicas", "5")
        kubectl.until_true(lambda: "web 5/5 5 5" in without_ages(printed.read_text()), printed.read_text)


def test_watch_with_a_selector_prints_objects_that_stop_matching(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "one")
    kubectl("label", "cm", "one", "colour=red")
    watched = ("cm", "-l", "colour=red", "--output-watch-events", "-o", "name")
    with kubectl.watching(tmp_path, *watched) as printed:
        kubectl.until_true(lambda: "configmap/one" in printed.read_text(), printed.read_text)
        kubectl("label", "cm", "one", "colour=blue", "--overwrite")
        kubectl.until_true(lambda: len(printed.read_text().splitlines()) == 2, printed.read_text)


def test_wait_returns_after_the_deletion(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl("delete", "deploy", "web", "--wait=false")
    assert kubectl("wait", "--for=delete", "deploy/web", "--timeout=60s") in (
        "",
        "deployment.apps/web condition met\n",
    )
    kubectl.until_true(
        lambda: kubectl("get", "rb", "-o", "name") == "", lambda: kubectl("get", "rb", "-o", "yaml")
    )
