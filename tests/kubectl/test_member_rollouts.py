"""Rolling updates in simulated members, as ``kubectl rollout`` follows them."""

from collections import Counter

from events.json_values import objects_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import DEPLOYMENT, POLICY, STATEFUL
from tests.kubectl.members import in_namespace, uids


def _images(member: Kubectl) -> Counter[object]:
    pods = objects_at(member.json("pods"), "items")
    return Counter(objects_at(pod, "spec", "containers")[0]["image"] for pod in pods)


def _until(member: Kubectl, images: dict[str, int]) -> None:
    member.until_true(lambda: _images(member) == images, lambda: member("get", "pods", "-o", "wide"))


def test_rollout_waits_for_new_pods_and_can_be_undone(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "deployment", "web", "--image=nginx:1", "--replicas=4")
    member("rollout", "status", "deployment/web", "--timeout=60s")
    before = uids(member)
    member("set", "image", "deployment/web", "nginx=fake/nginx")
    _until(member, {"nginx:1": 3, "fake/nginx": 2})
    member("rollout", "status", "deployment/web", "--timeout=1s", code=1)
    fields = ("replicas", "updatedReplicas", "readyReplicas", "conditions[*].reason")
    path = " ".join(f"{{.status.{name}}}" for name in fields)
    shown = member("get", "deployment", "web", "-o", f"jsonpath={path}")
    assert shown == "5 2 3 MinimumReplicasAvailable ReplicaSetUpdated"
    sets = member("get", "rs", "-o", "jsonpath={.items[*].status.replicas} {.items[*].status.readyReplicas}")
    assert sorted(sets.split()) == ["0", "2", "3", "3"]
    member("delete", "pod", min(uids(member).keys() & before.keys()))
    _until(member, {"nginx:1": 2, "fake/nginx": 3})
    member("rollout", "undo", "deployment/web")
    member("rollout", "status", "deployment/web", "--timeout=60s")
    _until(member, {"nginx:1": 4})
    assert len(uids(member).items() & before.items()) == 2


def test_propagated_deployment_is_rolled_out_in_its_member(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POLICY}".replace("[member1, member2]", "[member1]"))
    member = kubectl.on("member1")
    member.until_true(lambda: _images(member).total() == 3, lambda: kubectl("get", "rb", "-o", "yaml"))
    member("rollout", "status", "deployment/web", "--timeout=60s")
    (image,) = map(str, _images(member))
    kubectl("set", "image", "deployment/web", "*=fake/nginx")
    _until(member, {image: 3, "fake/nginx": 1})
    kubectl("set", "image", "deployment/web", "*=nginx:2")
    _until(member, {"nginx:2": 3})
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")


def test_partition_of_a_stateful_set_keeps_the_pods_below_it(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=STATEFUL)
    member("rollout", "status", "statefulset/db", "--timeout=60s")
    partition = '{{"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":{}}}}}}}}}'
    member("patch", "statefulset", "db", "-p", partition.format(1))
    before = uids(member)
    member("set", "image", "statefulset/db", "main=postgres:2")
    _until(member, {"postgres": 1, "postgres:2": 1})
    assert "partitioned roll out complete" in member("rollout", "status", "statefulset/db", "--timeout=60s")
    assert uids(member)["db-0"] == before["db-0"]
    member("patch", "statefulset", "db", "-p", partition.format(0))
    member("rollout", "status", "statefulset/db", "--timeout=60s")
    _until(member, {"postgres:2": 2})
