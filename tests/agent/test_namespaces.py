"""Namespaces of the control plane in a cluster with an agent."""

from pathlib import Path
from typing import Any

import pytest

from engine.agent import namespaces
from engine.domain import marks
from events.kube_objects import KubeObject
from tests.agent.conftest import Installation
from tests.agent.in_process import OWNED
from tests.agent.servers import eventually, join, serving
from tests.builders.manifests import manifest

Json = dict[str, Any]


def namespace(name: str, **labels: str) -> KubeObject:
    return KubeObject(manifest("v1", "Namespace", name, metadata={"labels": labels}))


def managed_namespace(name: str, **labels: str) -> KubeObject:
    value = namespace(name, **{marks.MANAGED: "true", **labels})
    return value.with_metadata(
        {
            "uid": f"uid-{name}",
            "annotations": {marks.WORK_NAMESPACE: "karmada-es-one"},
            "managedFields": [OWNED],
        }
    )


def test_missing_and_changed_namespaces_are_applied_and_former_ones_deleted() -> None:
    desired = {
        "new": managed_namespace("new"),
        "same": managed_namespace("same"),
        "changed": managed_namespace("changed", team="red"),
        "theirs": managed_namespace("theirs"),
    }
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    live = [
        managed_namespace("ending").with_metadata(ending),
        managed_namespace("same", theirs="kept"),
        managed_namespace("changed", team="blue"),
        managed_namespace("former"),
        managed_namespace("karmadas").with_metadata({"managedFields": [{**OWNED, "manager": "karmada"}]}),
        namespace("theirs"),
    ]
    todo = namespaces.plan(desired, live, "one", keeps_others=False)
    assert todo.applied == (desired["changed"], desired["new"])
    assert todo.deleted == (("former", "uid-former"),)
    assert namespaces.plan(desired, live, "one", keeps_others=True).deleted == ()
    assert namespaces.plan({}, live, "two", keeps_others=False).deleted == ()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_namespace_follows_that_of_the_control_plane(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    theirs = "/api/v1/namespaces/space-theirs"
    member.post("/api/v1/namespaces", namespace("space-theirs").document)

    def labels(name: str) -> Json | None:
        namespace = member.get(f"/api/v1/namespaces/{name}")
        return None if namespace is None else namespace["metadata"]["labels"]

    def team(name: str) -> str | None:
        return (labels(name) or {}).get("team")

    control.apply(namespace("space", team="blue").document, namespace("space-theirs", team="blue").document)
    with serving(tmp_path, join(control, "spaces", member.kubeconfig, tmp_path)) as agent:
        eventually(lambda: team("space") == "blue", "the namespace")
        control.apply(namespace("space", team="red").document, namespace("space-later").document)
        eventually(lambda: team("space") == "red" and labels("space-later") is not None, "the changes")
        agent.kill()
        for path in tmp_path.glob("agent.sqlite*"):
            path.unlink()
        control.delete("namespace", "space-later")
        control.delete("namespace", "space-theirs")
        agent.launch()
        eventually(lambda: labels("space-later") is None, "the removal")
        assert team("space") == "red", "an agent without its checkpoint keeps it"
        assert member.get(theirs) is not None, "it is not ours"
        assert "team" not in (labels("space-theirs") or {})
