"""Works and the marks of what they bring to a member: names, labels, annotations, conditions and statuses."""

import json
from typing import Any, Final, cast

import pytest

from engine.domain import marks
from events.json_values import as_object, at
from tests.builders.manifests import cluster
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, POLICY
from tests.kubectl.members import in_namespace, uids

JOB: Final = """
apiVersion: batch/v1
kind: Job
metadata: {name: web}
spec:
  parallelism: 2
  completions: 5
  template: {spec: {restartPolicy: Never, containers: [{name: sum, image: busybox}]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: sum}
spec:
  resourceSelectors: [{apiVersion: batch/v1, kind: Job, name: web}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
"""
OVERRIDE: Final = """
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: sum}
spec:
  resourceSelectors: [{apiVersion: batch/v1, kind: Job, name: web}]
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {site: edge}}]}}]
"""
SUSPENDED: Final = f"{POLICY}  suspension: {{dispatching: true}}\n"
CLAIM: Final = "propagationpolicy.karmada.io"
BINDING: Final = "resourcebinding.karmada.io"
TEMPLATE: Final = "resourcetemplate.karmada.io"
WORK: Final = "work.karmada.io"
ID: Final = "permanent-id"


def metadata_of(kubectl: Kubectl, *words: str) -> dict[str, Any]:
    return cast("dict[str, Any]", kubectl.json(*words)["metadata"])


def name_of_work(kubectl: Kubectl) -> str:
    return marks.work_name("Deployment", kubectl.namespace, "web")


def work_in(kubectl: Kubectl, member: str) -> dict[str, Any]:
    return cast("dict[str, Any]", kubectl.json("work", name_of_work(kubectl), "-n", f"karmada-es-{member}"))


def condition(work: dict[str, Any], kind: str) -> tuple[str, str] | None:
    conditions = {condition["type"]: condition for condition in work.get("status", {}).get("conditions", [])}
    return (conditions[kind]["status"], conditions[kind]["reason"]) if kind in conditions else None


def until_ready(kubectl: Kubectl) -> None:
    kubectl.on("member1").until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")


def test_object_in_a_member_carries_the_marks_of_template_policy_binding_and_work(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_ready(kubectl)
    namespace, work = (
        kubectl.namespace,
        metadata_of(kubectl, "work", name_of_work(kubectl), "-n", "karmada-es-member1"),
    )
    template, binding = metadata_of(kubectl, "deploy", "web"), metadata_of(kubectl, "rb", "web-deployment")
    policy_id = metadata_of(kubectl, "pp", "web")["labels"][f"{CLAIM}/{ID}"]
    assert template["labels"][f"{CLAIM}/{ID}"] == policy_id
    binding_id, work_id = binding["labels"][f"{BINDING}/{ID}"], work["labels"][f"{WORK}/{ID}"]
    assert binding["labels"] == {f"{CLAIM}/{ID}": policy_id, f"{BINDING}/{ID}": binding_id}
    assert work["labels"] == {f"{BINDING}/{ID}": binding_id, f"{WORK}/{ID}": work_id}

    metadata = metadata_of(kubectl.on("member1"), "deploy", "web")
    expected = {
        "app": "web",
        "karmada.io/managed": "true",
        f"{CLAIM}/{ID}": policy_id,
        f"{BINDING}/{ID}": binding_id,
        f"{WORK}/{ID}": work_id,
    }
    assert metadata["labels"] == expected
    annotations: dict[str, str] = metadata["annotations"]
    names = annotations.pop(f"{TEMPLATE}/managed-annotations").split(",")
    assert sorted([*annotations, f"{TEMPLATE}/managed-annotations"]) == names
    assert annotations.pop(f"{TEMPLATE}/managed-labels") == ",".join(sorted(expected))
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration")
    assert annotations == {
        f"{CLAIM}/name": "web",
        f"{CLAIM}/namespace": namespace,
        f"{BINDING}/name": "web-deployment",
        f"{BINDING}/namespace": namespace,
        f"{WORK}/name": name_of_work(kubectl),
        f"{WORK}/namespace": "karmada-es-member1",
        f"{WORK}/conflict-resolution": "abort",
        f"{TEMPLATE}/uid": template["uid"],
        f"{TEMPLATE}/generation": str(template["generation"]),
    }
    (manifest,) = work_in(kubectl, "member1")["spec"]["workload"]["manifests"]
    assert manifest["metadata"]["labels"] == metadata["labels"]
    assert manifest["metadata"]["annotations"].items() >= annotations.items()


def test_work_shows_the_dispatch_and_the_status_of_its_object(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_ready(kubectl)

    def healths() -> list[str]:
        return [
            status["health"] for status in work_in(kubectl, "member1")["status"].get("manifestStatuses", [])
        ]

    kubectl.until_true(lambda: healths() == ["Healthy"], lambda: str(work_in(kubectl, "member1")))
    work = work_in(kubectl, "member1")
    assert (work["spec"]["suspendDispatching"], work["spec"]["preserveResourcesOnDeletion"]) == (False, False)
    assert condition(work, "Applied") == ("True", "AppliedSuccessful")
    assert condition(work, "Dispatching") == ("True", "Dispatching")
    (status,) = work["status"]["manifestStatuses"]
    assert status["identifier"] == {
        "ordinal": 0,
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "resource": "",
        "namespace": kubectl.namespace,
        "name": "web",
    }
    assert status["status"]["readyReplicas"] == 2

    preserving = f"{POLICY}  preserveResourcesOnDeletion: true\n  conflictResolution: Overwrite\n"
    kubectl("apply", "-f", "-", stdin=preserving)
    kubectl.until_true(
        lambda: work_in(kubectl, "member1")["spec"]["preserveResourcesOnDeletion"],
        lambda: str(work_in(kubectl, "member1")),
    )
    assert (
        work_in(kubectl, "member1")["metadata"]["annotations"][f"{WORK}/conflict-resolution"] == "overwrite"
    )
    # Preserved workloads would stay in the members and take capacity from the following tests.
    kubectl("apply", "-f", "-", stdin=POLICY)
    kubectl.until_true(
        lambda: not work_in(kubectl, "member1")["spec"]["preserveResourcesOnDeletion"],
        lambda: str(work_in(kubectl, "member1")),
    )


def test_workload_stays_in_the_members_if_its_template_is_deleted_with_orphans(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_ready(kubectl)
    member, shown = in_namespace(kubectl), ("get", "deployment", "web", "-o", "yaml")
    assert kubectl("delete", "deployment", "web", "--cascade=orphan").endswith('"web" deleted\n')
    kubectl.until_true(lambda: not kubectl("get", "rb", "-o", "name"), lambda: kubectl("get", "rb"))
    kubectl.until_true(lambda: marks.MANAGED not in member(*shown), lambda: member(*shown))
    assert member("get", "pods", "-o", "name")
    member("delete", "deployment", "web")


def test_work_exists_and_follows_its_template_while_dispatching_is_suspended(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=SUSPENDED)
    kubectl("apply", "-f", "-", stdin=BOTH.partition("---")[0])
    name = ("get", "work", name_of_work(kubectl), "-n", "karmada-es-member1", "-o", "name")
    kubectl.until_true(lambda: kubectl(*name, code=None) != "", lambda: kubectl.errors)
    work = work_in(kubectl, "member1")
    assert work["spec"]["suspendDispatching"] is True
    assert condition(work, "Dispatching") == ("False", "SuspendDispatching")
    assert condition(work, "Applied") is None

    def replicas() -> int:
        return int(work_in(kubectl, "member1")["spec"]["workload"]["manifests"][0]["spec"]["replicas"])

    assert replicas() == 2
    kubectl("scale", "deploy", "web", "--replicas=5")
    kubectl.until_true(lambda: replicas() == 3, lambda: str(replicas()))
    assert kubectl.on("member1").table("deploy") == []
    status = cast("dict[str, Any]", kubectl.json("rb", "web-deployment"))["status"]
    unapplied = {"applied": False, "health": "Unknown"}
    assert status["aggregatedStatus"] == [
        {"clusterName": cluster} | unapplied for cluster in ("member1", "member2")
    ]
    assert condition({"status": status}, "FullyApplied") == ("False", "FullyAppliedFailed")

    kubectl("apply", "-f", "-", stdin=SUSPENDED.replace("dispatching: true", "dispatching: false"))
    kubectl.on("member1").until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    assert condition(work_in(kubectl, "member1"), "Dispatching") == ("True", "Dispatching")
    binding = as_object(kubectl.json("rb", "web-deployment"))
    assert at(binding, "spec", "suspension") == {"dispatching": False}

    kubectl("apply", "-f", "-", stdin=SUSPENDED)
    kubectl.until_true(
        lambda: condition(work_in(kubectl, "member1"), "Dispatching") == ("False", "SuspendDispatching"),
        lambda: str(work_in(kubectl, "member1")),
    )
    kubectl("delete", "deploy", "web")
    kubectl.until_true(lambda: kubectl(*name, code=None) == "", lambda: kubectl.errors)
    kubectl.on("member1").until([], "deploy")


def list_events(kubectl: Kubectl, *words: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", kubectl.json("events", *words)["items"])


def events_of(kubectl: Kubectl, *words: str) -> dict[str, tuple[str, str]]:
    """The Events of an object by reason, with their messages and sources."""
    listed = list_events(kubectl, *words)
    return {event["reason"]: (event["message"], event["source"]["component"]) for event in listed}


@pytest.mark.parametrize("kind", ["", ",involvedObject.kind=Work"])
def test_events_report_dispatch_application_and_health_of_a_work(kubectl: Kubectl, kind: str) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_ready(kubectl)
    name, namespace, space = name_of_work(kubectl), kubectl.namespace, "karmada-es-member1"
    expected = {
        "WorkDispatching": ("Work is being dispatched to member clusters.", "execution-controller"),
        "SyncSucceed": (f"Sync work({space}/{name}) to cluster(member1) successful.", "execution-controller"),
        "ReflectStatusSucceed": (
            f"Reflect status for object(Deployment/{namespace}/web) succeed.",
            "work-status-controller",
        ),
        "InterpretHealthSucceed": (
            f"Interpret health of object(Deployment/{namespace}/web) as healthy.",
            "work-status-controller",
        ),
    }
    selected = ("-n", space, "--field-selector", f"involvedObject.name={name}{kind}")
    kubectl.until_true(
        lambda: events_of(kubectl, *selected) == expected, lambda: str(events_of(kubectl, *selected))
    )
    names = [event["metadata"]["name"] for event in list_events(kubectl, *selected)]
    assert len(set(names)) == len(names)


def test_event_reports_the_health_of_a_service(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "web", "--tcp=80")
    policy = POLICY.replace("apps/v1", "v1").replace("kind: Deployment", "kind: Service")
    kubectl("apply", "-f", "-", stdin=policy)
    name = marks.work_name("Service", kubectl.namespace, "web")
    selected = ("-n", "karmada-es-member1", "--field-selector", f"involvedObject.name={name}")
    message = f"Interpret health of object(Service/{kubectl.namespace}/web) as healthy."

    def reported() -> tuple[str, str] | None:
        return events_of(kubectl, *selected).get("InterpretHealthSucceed")

    kubectl.until_true(lambda: reported() == (message, "work-status-controller"), lambda: str(reported()))


def test_events_of_a_template_report_its_replicas_and_application_in_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_ready(kubectl)
    selected = ("--field-selector", "involvedObject.name=web,involvedObject.kind=Deployment")
    replicas = (f"Get replicas(3) of Deployment({kubectl.namespace}/web) succeed.", "resource-detector")

    def are_reported() -> bool:
        events = events_of(kubectl, *selected)
        reporter = events.get("SyncSucceed", ("", ""))[1]
        return reporter == "execution-controller" and events.get("GetReplicasSucceed") == replicas

    kubectl.until_true(are_reported, lambda: str(events_of(kubectl, *selected)))


def test_event_reports_suspended_dispatching(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH.replace(POLICY, SUSPENDED))
    selected = (
        "-n",
        "karmada-es-member1",
        "--field-selector",
        f"involvedObject.name={name_of_work(kubectl)}",
    )
    expected = {"WorkDispatching": ("Work dispatching is in a suspended state.", "execution-controller")}
    kubectl.until_true(
        lambda: events_of(kubectl, *selected) == expected, lambda: str(events_of(kubectl, *selected))
    )


def test_events_report_a_cluster_that_joined(kubectl: Kubectl) -> None:
    # A new cluster, since Events come from the newest records about an object, and other tests add many about members.
    name = "joined"
    kubectl("create", "-f", "-", stdin=json.dumps(cluster(name)))
    messages = (
        f"Created execution space(karmada-es-{name}) for cluster({name}).",
        "SyncImpersonationConfigSucceed",
    )
    words = ("describe", "cluster", name)
    kubectl.until_true(
        lambda: all(message in kubectl(*words) for message in messages), lambda: kubectl(*words)
    )
    kubectl("delete", "cluster", name)


@pytest.mark.parametrize("override", ["", OVERRIDE], ids=["plain", "overridden"])
def test_completions_of_a_job_are_divided_over_its_clusters(kubectl: Kubectl, override: str) -> None:
    kubectl("apply", "-f", "-", stdin=JOB + override)
    shown = ("get", "job", "web", "-o", "jsonpath={.spec.parallelism} {.spec.completions}")
    members = {name: kubectl.on(name) for name in ("member1", "member2")}
    for member in members.values():
        member.until_true(lambda member=member: bool(member(*shown, code=None)), lambda: "no Job")
    assert sorted(member(*shown) for member in members.values()) == ["1 2", "1 3"]
    name = marks.work_name("Job", kubectl.namespace, "web")
    in_works = [
        work["spec"]["workload"]["manifests"][0]["spec"]["completions"]
        for cluster_name in members
        for work in [cast("dict[str, Any]", kubectl.json("work", name, "-n", f"karmada-es-{cluster_name}"))]
    ]
    assert sorted(in_works) == [2, 3]


def test_replaced_job_runs_again(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=JOB)
    done = ("get", "job", "web", "-o", "jsonpath={.status.succeeded}")
    kubectl.until_true(lambda: kubectl(*done) == "5", lambda: kubectl("get", "job", "web", "-o", "yaml"))
    member1, member2 = in_namespace(kubectl), in_namespace(kubectl, "member2")
    lists = ((member1, "jobs"), (member2, "jobs"), (kubectl, "rb"))
    former = [uids(*listed) for listed in lists]

    def are_replaced() -> bool:
        present = [uids(*listed) for listed in lists]
        return all(new.keys() == old.keys() and new != old for new, old in zip(present, former, strict=True))

    kubectl("replace", "--force", "-f", "-", stdin=JOB)
    kubectl.until_true(are_replaced, lambda: kubectl("get", "rb", "-o", "yaml"))
    kubectl.until_true(lambda: kubectl(*done) == "5", lambda: kubectl("get", "job", "web", "-o", "yaml"))
