"""Simulated members are clusters of their own: what clients write there, and how propagation meets it."""

import json
from concurrent.futures import ThreadPoolExecutor

from events.json_values import Json, at, object_at, objects_at
from tests.builders.manifests import manifest
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, DEPLOYMENT, POLICY, STATEFUL
from tests.kubectl.members import in_namespace, uids

IN_MEMBER1 = POLICY.replace("[member1, member2]", "[member1]")
OVERWRITING = IN_MEMBER1.replace("spec:\n", "spec:\n  conflictResolution: Overwrite\n", 1)
_BUILT_IN = ["configmap/kube-root-ca.crt", "serviceaccount/default"]
READY = ["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"]


def _applied(kubectl: Kubectl) -> Json:
    """The Deployment's entry for member1 in the status of its binding."""
    items = objects_at(kubectl.json("rb", "web-deployment"), "status", "aggregatedStatus")
    return items[0] if items else {}


def test_objects_can_be_created_changed_and_deleted_in_a_member(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "configmap", "settings", "--from-literal=color=red")
    member("patch", "configmap", "settings", "-p", '{"data":{"color":"blue"}}')
    assert member("get", "configmap", "settings", "-o", "jsonpath={.data.color}") == "blue"
    member("create", "serviceaccount", "robot")
    member("delete", "configmap", "settings")
    assert member("get", "configmaps,serviceaccounts", "-o", "name").split() == [
        *_BUILT_IN,
        "serviceaccount/robot",
    ]
    kubectl("get", "serviceaccount", "robot", code=1)
    member("delete", "serviceaccount", "robot")
    assert member("get", "serviceaccounts", "-o", "name").split() == _BUILT_IN[1:]


def test_namespaces_of_a_member_contain_an_account_and_the_authority(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    assert member("get", "configmaps,serviceaccounts", "-o", "name").split() == _BUILT_IN
    certificate = ("get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}")
    assert member(*certificate) == kubectl(*certificate)
    assert member("auth", "whoami", f"--token={member('create', 'token', 'default').strip()}")
    member("create", "serviceaccount", "default", code=1)
    assert "already exists" in member.errors
    member("patch", "serviceaccount", "default", "-p", '{"imagePullSecrets":[{"name":"registry"}]}')
    secret = ("get", "serviceaccount", "default", "-o", "jsonpath={.imagePullSecrets[0].name}")
    assert member(*secret) == "registry"
    before = object_at(member.json("configmap", "kube-root-ca.crt"), "metadata")["uid"]
    for _ in range(2):
        member("delete", "configmaps,serviceaccounts", "--all")
    assert member("get", "configmaps,serviceaccounts", "-o", "name").split() == _BUILT_IN
    assert object_at(member.json("configmap", "kube-root-ca.crt"), "metadata")["uid"] != before
    assert (member(*secret), member(*certificate)) == ("", kubectl(*certificate))


def test_clusters_report_quotas_limits_volumes_and_classes(kubectl: Kubectl) -> None:
    kinds = kubectl(
        "get", "cluster", "member1", "-o", "jsonpath={.status.apiEnablements[*].resources[*].kind}"
    )
    assert set(kinds.split()) >= {
        "IngressClass",
        "LimitRange",
        "PersistentVolume",
        "ResourceQuota",
        "ResourceClaim",
        "RuntimeClass",
        "StorageClass",
    }


def test_deployment_of_a_member_runs_scales_and_ends_there(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=DEPLOYMENT)
    member.until(READY, "deploy")
    assert len(uids(member)) == 3
    member("scale", "deploy", "web", "--replicas=5")
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    assert len(uids(member)) == 5
    assert kubectl.table("deploy") == []
    member("delete", "deploy", "web")
    assert uids(member) == {}


def test_namespace_of_a_member_must_exist_and_is_deleted_with_its_objects(kubectl: Kubectl) -> None:
    member = kubectl.on("member3")
    name = f"{kubectl.namespace[:40]}-local"
    member("create", "-n", name, "configmap", "settings", code=1)
    assert f'namespaces "{name}" not found' in member.errors
    member("create", "namespace", name)
    member("create", "-n", name, "configmap", "settings")
    member("delete", "namespace", name)
    assert member("get", "-n", name, "configmaps", "-o", "name") == ""
    member("delete", "namespace", "default", code=1)


def test_existing_object_is_a_conflict_unless_the_policy_overwrites(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=DEPLOYMENT)
    member.until(READY, "deploy")
    before = uids(member)
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{IN_MEMBER1}")
    kubectl.until_true(
        lambda: _applied(kubectl).get("applied") is False, lambda: kubectl("get", "rb", "-o", "yaml")
    )
    assert "already exists in the cluster member1" in str(_applied(kubectl)["appliedMessage"])
    assert "karmada.io/managed" not in member("get", "deploy", "web", "-o", "yaml")
    kubectl("apply", "-f", "-", stdin=OVERWRITING)
    kubectl.until_true(
        lambda: _applied(kubectl).get("applied") is True, lambda: kubectl("get", "rb", "-o", "yaml")
    )
    assert "karmada.io/managed" in member("get", "deploy", "web", "-o", "yaml")
    assert uids(member) == before, "migration restarts no pod"


def test_promoted_deployment_is_spread_without_a_restart(kubectl: Kubectl) -> None:
    """`karmadactl promote` writes the object of the member with an annotation, and a policy for that member."""
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=DEPLOYMENT)
    member.until(READY, "deploy")
    before = uids(member)
    promoted = DEPLOYMENT.replace(
        "  name: web\n", "  name: web\n  annotations: {work.karmada.io/conflict-resolution: overwrite}\n", 1
    )
    kubectl("apply", "-f", "-", stdin=f"{promoted}---{IN_MEMBER1}")
    kubectl.until(READY, "deploy")
    assert uids(member) == before
    kubectl("apply", "-f", "-", stdin=POLICY)
    kubectl("scale", "deploy", "web", "--replicas=6")
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 6/6 6 6"], "deploy")
    assert before.keys() <= uids(member).keys()
    assert uids(kubectl.on("member2"))


def test_drift_in_a_member_is_put_right(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    member = kubectl.on("member1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    member("set", "image", "deploy/web", "nginx=caddy")
    member("scale", "deploy", "web", "--replicas=7")
    member("label", "deploy", "web", "team=blue")
    deployment = member.json("deploy", "web")
    assert object_at(deployment, "spec")["replicas"] == 2
    assert "caddy" not in str(object_at(deployment, "spec"))
    assert object_at(deployment, "metadata", "labels")["team"] == "blue"
    member("delete", "deploy", "web")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    assert (
        object_at(member.json("deploy", "web"), "metadata")["uid"] != object_at(deployment, "metadata")["uid"]
    )


def test_deleted_pod_is_replaced_by_a_new_one(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{IN_MEMBER1}")
    member = kubectl.on("member1")
    member.until(READY, "deploy")
    before = uids(member)
    name = min(before)
    assert member("delete", "pod", name, "--wait=false") == f'pod "{name}" deleted\n'
    member.until(READY, "deploy")
    after = uids(member)
    assert len(after) == 3
    assert before.keys() - after.keys() == {name}
    assert {pod: uid for pod, uid in after.items() if pod in before} == {
        pod: uid for pod, uid in before.items() if pod != name
    }
    kubectl.until(READY, "deploy")


def test_members_may_own_the_replicas_of_a_template(kubectl: Kubectl) -> None:
    retaining = DEPLOYMENT.replace(
        "labels: {app: web}", 'labels: {resourcetemplate.karmada.io/retain-replicas: "true"}', 1
    )
    kubectl("apply", "-f", "-", stdin=f"{retaining}---{IN_MEMBER1}")
    member = kubectl.on("member1")
    member.until(READY, "deploy")
    member("scale", "deploy", "web", "--replicas=4")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 4/4 4 4"], "deploy")


def test_members_may_own_the_parallelism_of_a_job(kubectl: Kubectl) -> None:
    retaining = JOB.replace(
        "metadata:\n", "metadata:\n  labels: {resourcetemplate.karmada.io/retain-replicas: 'true'}\n", 1
    )
    slow = retaining.replace('run-seconds: "1"', 'run-seconds: "600"').replace(
        "completions: 2", "completions: 8"
    )
    kubectl("apply", "-f", "-", stdin=f"{slow}---{ALL_IN_MEMBER1}")
    member = kubectl.on("member1")
    parallelism = ("get", "job", "once", "-o", "jsonpath={.spec.parallelism}/{.status.active}")
    member.until_true(lambda: member(*parallelism) == "2/2", lambda: member(*parallelism))
    member("patch", "job", "once", "-p", '{"spec":{"parallelism":4}}')
    member.until_true(lambda: member(*parallelism) == "4/4", lambda: member(*parallelism))


JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: once
  annotations: {simulation.reballast.io/run-seconds: "1"}
spec:
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: busybox}]}
"""
ALL_IN_MEMBER1 = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors:
  - {apiVersion: batch/v1, kind: Job}
  - {apiVersion: apps/v1, kind: DaemonSet}
  placement: {clusterAffinity: {clusterNames: [member1]}}
"""


def test_propagated_job_completes_and_daemon_set_runs_on_every_node(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{JOB}---{AGENT}---{ALL_IN_MEMBER1}")
    kubectl("wait", "--for=condition=complete", "job/once", "--timeout=60s")
    assert object_at(kubectl.json("job", "once"), "status")["succeeded"] == 2
    member = kubectl.on("member1")
    heads, row = member.table("job")
    assert heads == "NAME STATUS COMPLETIONS DURATION"
    # It takes a second; its start and end are rounded to seconds, so that two may be shown.
    assert row in {"once Complete 2/2 1s", "once Complete 2/2 2s"}
    assert [line.split()[2] for line in member.table("pods")[1:] if "once" in line] == ["Completed"] * 2
    nodes = len(member("get", "nodes", "-o", "name").splitlines())
    kubectl.until_true(
        lambda: at(kubectl.json("daemonset", "agent"), "status", "numberReady") == nodes,
        lambda: kubectl("get", "daemonset", "agent", "-o", "yaml"),
    )


def test_object_with_a_finalizer_waits_for_it(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "configmap", "settings")
    member("patch", "configmap", "settings", "-p", '{"metadata":{"finalizers":["example.com/wait"]}}')
    member("delete", "configmap", "settings", "--wait=false")
    assert object_at(member.json("configmap", "settings"), "metadata")["deletionTimestamp"]
    member("patch", "configmap", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    member("get", "configmap", "settings", code=1)


def test_writes_with_conflicting_versions_are_refused(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "configmap", "settings")
    old = member("get", "configmap", "settings", "-o", "yaml")
    member("label", "configmap", "settings", "a=b")
    member("replace", "-f", "-", stdin=old, code=1)
    assert "the object has been modified" in member.errors
    member("create", "configmap", "settings", code=1)
    assert "already exists" in member.errors


def test_simultaneous_patches_of_an_object_do_not_conflict(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "configmap", "settings")

    def label(name: str) -> str:
        return member("label", "configmap", "settings", f"{name}=1")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(label, "abcdefgh"))
    labels = object_at(member.json("configmap", "settings"), "metadata", "labels")
    assert sorted(labels) == list("abcdefgh")


def test_derived_objects_of_a_member_are_read_only(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    node = member("get", "nodes", "-o", "name").split()[0]
    member("delete", node, code=1)
    assert "the simulation of member1 manages it" in member.errors


def test_rollout_of_a_member_can_be_undone(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "deployment", "web", "--image=nginx:1")
    image = ("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    first = member("get", "rs", "-o", "name")
    member("set", "image", "deploy/web", "nginx=nginx:2")
    member("set", "image", "deploy/web", "nginx=nginx:3")
    history = member("rollout", "history", "deploy", "web").split()
    assert history[-6:] == ["1", "<none>", "2", "<none>", "3", "<none>"]
    assert "nginx:2" in member("rollout", "history", "deploy", "web", "--revision=2")
    member("rollout", "undo", "deploy", "web")
    assert member(*image) == "nginx:2"
    member("rollout", "undo", "deploy", "web", "--to-revision=1")
    assert member(*image) == "nginx:1"
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    assert [
        line.split()[:2] for line in member("get", "rs", "--no-headers").splitlines() if " 1 " in line
    ] == [[first.strip().removeprefix("replicaset.apps/"), "1"]]
    assert member("rollout", "history", "deploy", "web").split()[-2:] == ["5", "<none>"]


def test_deleted_pod_of_a_stateful_set_keeps_its_name_and_its_claim(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("apply", "-f", "-", stdin=STATEFUL)
    member("rollout", "status", "statefulset", "db", "--timeout=60s")
    before = uids(member)
    assert before.keys() == {"db-0", "db-1"}
    size = "jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.capacity.storage},{end}"
    assert member("get", "pvc", "-o", size) == "data-db-0 Bound 1Gi,data-db-1 Bound 1Gi,"
    member("delete", "pod", "db-0")
    member("rollout", "status", "statefulset", "db", "--timeout=60s")
    after = uids(member)
    assert (after.keys(), after["db-1"]) == (before.keys(), before["db-1"])
    assert after["db-0"] != before["db-0"]
    assert member("get", "pvc", "-o", size) == "data-db-0 Bound 1Gi,data-db-1 Bound 1Gi,"


def test_rollout_of_a_stateful_set_of_a_member_can_be_undone(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    labels = {"app": "s"}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    spec: Json = {"serviceName": "s", "replicas": 1, "selector": {"matchLabels": labels}, "template": pods}
    member("apply", "-f", "-", stdin=json.dumps(manifest("apps/v1", "StatefulSet", "s", spec=spec)))
    member("set", "image", "sts/s", "c=nginx:2")
    assert member("rollout", "history", "sts/s").split()[-4:] == ["1", "<none>", "2", "<none>"]
    member("rollout", "undo", "sts/s")
    assert member("get", "sts", "s", "-o", "jsonpath={.spec.template.spec.containers[0].image}") == "nginx:1"
    assert member("rollout", "history", "sts/s").split()[-4:] == ["2", "<none>", "3", "<none>"]


def test_pod_without_capacity_in_a_member_reports_the_missing_resources(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "deployment", "big", "--image=nginx", "--replicas=0")
    member("set", "resources", "deploy/big", "--requests=cpu=1M")
    member("scale", "deploy/big", "--replicas=1")
    message = "0/100 nodes are available: 100 Insufficient cpu. no new claims to deallocate"
    member.until_true(lambda: message in member("describe", "pods"), lambda: member("describe", "pods"))
    described = member("describe", "pods")
    assert "FailedScheduling" in described
    assert "default-scheduler" in described
    assert "PodScheduled   False" in described
    member("scale", "deploy/big", "--replicas=0")
    assert "FailedScheduling" not in member("get", "events")


def test_pods_of_a_member_have_events(kubectl: Kubectl) -> None:
    member = in_namespace(kubectl)
    member("create", "deployment", "web", "--image=nginx")
    member("create", "deployment", "bad", "--image=fake/nginx")
    reasons = ("get", "events", "-o", "jsonpath={range .items[*]}{.reason} {end}")
    expected = {"SuccessfulCreate", "Scheduled", "Pulled", "Created", "Started", "BackOff"}
    member.until_true(lambda: expected <= set(member(*reasons).split()), lambda: member(*reasons))
    assert "Successfully assigned" in member("describe", "pods", "-l", "app=web")
    assert "Created pod: web-" in member("describe", "replicasets", "-l", "app=web")
    assert 'Back-off pulling image "fake/nginx"' in member("describe", "pods", "-l", "app=bad")
