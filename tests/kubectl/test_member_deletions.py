"""Deletion in simulated members: objects deleted with their owner, orphans, and their adoption."""

import json

import pytest

from events.json_values import Json, at, object_at, objects_at
from tests.builders.manifests import manifest
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import STATEFUL
from tests.kubectl.members import in_namespace, uids

_OWNERS = "jsonpath={.items[*].metadata.ownerReferences[*].kind}"


def _config_map(name: str, *owners: Json, **fields: object) -> str:
    metadata: Json = {"name": name, "ownerReferences": list(owners), **fields}
    return json.dumps({**manifest("v1", "ConfigMap", name), "metadata": metadata})


def _owner(member: Kubectl, kind: str, name: str, **fields: object) -> Json:
    owner = member.json(kind, name)
    uid = object_at(owner, "metadata")["uid"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": uid, **fields}


def _names(member: Kubectl) -> set[str]:
    """The ConfigMaps of the namespace, without the one that every namespace contains."""
    names = (str(at(item, "metadata", "name")) for item in objects_at(member.json("configmaps"), "items"))
    return set(names) - {"kube-root-ca.crt"}


def test_orphaned_replica_set_keeps_its_pods_and_is_adopted(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    for image in ("nginx:1", "nginx:2"):
        deployment = kubectl(
            "create", "deployment", "web", f"--image={image}", "--replicas=2", "--dry-run=client", "-o=yaml"
        )
        member("apply", "-f", "-", stdin=deployment)
    member("rollout", "status", "deployment/web", "--timeout=60s")
    before, sets = uids(member), uids(member, "replicasets")
    assert len(sets) == len(before) == 2
    member("delete", "deployment", "web", "--cascade=orphan")
    assert not member.errors
    assert not member("get", "deployments", "-o", "name")
    assert uids(member, "replicasets") == sets
    assert not member("get", "rs", "-o", _OWNERS)
    assert uids(member) == before
    assert member("get", "pods", "-o", _OWNERS).split() == ["ReplicaSet"] * 2
    owner = member("get", "rs", "-o", "jsonpath={.items[?(@.spec.replicas==2)].metadata.name}")
    member("scale", "rs", owner, "--replicas=3")
    member.until_true(lambda: len(uids(member)) == 3, lambda: member("get", "pods"))
    assert before.items() < uids(member).items()
    member("apply", "-f", "-", stdin=deployment)
    member("rollout", "status", "deployment/web", "--timeout=60s")
    assert uids(member) == before
    assert uids(member, "replicasets") == sets
    assert member("get", "rs", "-o", _OWNERS).split() == ["Deployment"] * 2
    assert member("rollout", "history", "deployment/web").split()[-4:] == ["1", "<none>", "2", "<none>"]
    member("delete", "deployment", "web", "--cascade=foreground")
    assert not member("get", "rs,pods", "-o", "name")


def test_orphaned_pods_are_adopted_by_a_stateful_set_of_their_name(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=STATEFUL)
    member("rollout", "status", "statefulset/db", "--timeout=60s")
    before = uids(member)
    member("delete", "statefulset", "db", "--cascade=orphan")
    assert not member.errors
    assert uids(member) == before
    assert not member("get", "pods", "-o", _OWNERS)
    member("delete", "pod", "db-0")
    assert uids(member) == {"db-1": before["db-1"]}
    member("apply", "-f", "-", stdin=STATEFUL)
    member("rollout", "status", "statefulset/db", "--timeout=60s")
    after = uids(member)
    assert after.keys() == before.keys()
    assert (after["db-1"], after["db-0"] != before["db-0"]) == (before["db-1"], True)
    assert member("get", "pods", "-o", _OWNERS).split() == ["StatefulSet"] * 2
    member("delete", "statefulset", "db")
    assert not member("get", "pods", "-o", "name")


def test_objects_are_deleted_with_their_last_owner(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "configmap", "first")
    member("create", "serviceaccount", "second")
    owners = [_owner(member, "configmap", "first"), _owner(member, "serviceaccount", "second")]
    member("apply", "-f", "-", stdin=_config_map("both", *owners))
    member("apply", "-f", "-", stdin=_config_map("below", _owner(member, "configmap", "both")))
    member("delete", "configmap", "first")
    left = ("get", "configmap", "both", "-o", "jsonpath={.metadata.ownerReferences[*].name}")
    member.until_true(lambda: member(*left) == "second", lambda: member(*left))
    member("delete", "serviceaccount", "second")
    member.until_true(lambda: not _names(member), lambda: str(_names(member)))
    missing_owner = {**owners[0], "name": "never"}
    member("apply", "-f", "-", stdin=_config_map("stray", missing_owner))
    member.until_true(lambda: not _names(member), lambda: str(_names(member)))


def test_objects_are_deleted_with_the_workload_or_pod_that_owns_them(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "deployment", "web", "--image=nginx")
    member("rollout", "status", "deployment/web", "--timeout=60s")
    pod = member("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    replica_set = member("get", "rs", "-o", "jsonpath={.items[0].metadata.name}")
    for kind, name in (("deployment", "web"), ("rs", replica_set), ("pod", pod)):
        member("apply", "-f", "-", stdin=_config_map(f"of-{kind}", _owner(member, kind, name)))
    member("delete", "pod", pod)
    rest = {"of-deployment", "of-rs"}
    member.until_true(lambda: _names(member) == rest, lambda: str(_names(member)))
    member("delete", "deployment", "web")
    member.until_true(lambda: not _names(member), lambda: str(_names(member)))


def test_cascade_decides_when_owned_objects_are_deleted(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    for name in ("kept", "blocked"):
        member("create", "configmap", name)
    member("apply", "-f", "-", stdin=_config_map("orphan", _owner(member, "configmap", "kept")))
    member("delete", "configmap", "kept", "--cascade=orphan")
    assert not object_at(member.json("configmap", "orphan"), "metadata").get("ownerReferences")
    owner = _owner(member, "configmap", "blocked", blockOwnerDeletion=True)
    member("apply", "-f", "-", stdin=_config_map("blocking", owner, finalizers=["example.io/wait"]))
    member("delete", "configmap", "blocked", "--cascade=foreground", "--wait=false")
    finalizers = ("get", "configmap", "blocked", "-o", "jsonpath={.metadata.finalizers[0]}")
    assert member(*finalizers) == "foregroundDeletion"
    dying = ("get", "configmap", "blocking", "-o", "jsonpath={.metadata.deletionTimestamp}")
    member.until_true(lambda: bool(member(*dying)), lambda: member("get", "configmap", "-o", "yaml"))
    assert _names(member) == {"orphan", "blocked", "blocking"}
    member("patch", "configmap", "blocking", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    member.until_true(lambda: _names(member) == {"orphan"}, lambda: str(_names(member)))


@pytest.mark.parametrize(("name", "phase"), [("ending", ""), ("", "Active")], ids=["own", "propagated"])
def test_namespace_waits_for_the_finalizers_of_its_objects(kubectl: Kubectl, name: str, phase: str) -> None:
    member = kubectl.on("member1")
    member.namespace = name or kubectl.namespace
    member("create", "namespace", member.namespace, code=None)
    member("create", "configmap", "plain")
    member("apply", "-f", "-", stdin=_config_map("waiting", finalizers=["example.io/wait"]))
    member("delete", "namespace", member.namespace, "--wait=false")
    shown = ("get", "namespace", member.namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    assert member(*shown) == "Terminating"
    member.until_true(lambda: _names(member) == {"waiting"}, lambda: str(_names(member)))
    member("create", "configmap", "late", code=1)
    assert "because it is being terminated" in member.errors
    member("patch", "configmap", "waiting", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    member.until_true(lambda: member(*shown) == phase, lambda: member(*shown))
    assert not _names(member)
