"""Bindings as tools read them: versions, generations, conditions and the statuses of members."""

import json
from typing import Any, Final, cast

from engine.domain import marks
from tests.builders.manifests import manifest, selector
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, POLICY

DEPLOYMENT_WEB: Final = selector("web")
VERSION: Final = "jsonpath={.metadata.resourceVersion}"
CLAIM: Final = "propagationpolicy.karmada.io/permanent-id"
OVERWRITING: Final = f"{POLICY}  conflictResolution: Overwrite\n"
OTHER_SCHEDULER: Final = f"{POLICY}  schedulerName: volcano\n"


def binding_of(kubectl: Kubectl) -> dict[str, Any]:
    return cast("dict[str, Any]", kubectl.json("rb", "web-deployment"))


def until_scheduled(kubectl: Kubectl) -> None:
    names = ("get", "rb", "web-deployment", "-o", "jsonpath={.spec.clusters[*].name}")
    kubectl.until_true(lambda: kubectl(*names, code=None) == "member1 member2", lambda: kubectl.errors)


def test_binding_names_the_version_of_its_template_that_it_follows(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)
    before = int(binding_of(kubectl)["spec"]["resource"]["resourceVersion"])
    kubectl("scale", "deploy", "web", "--replicas=4")
    kubectl.until_true(
        lambda: binding_of(kubectl)["spec"]["replicas"] == 4, lambda: str(binding_of(kubectl)["spec"])
    )
    after = int(binding_of(kubectl)["spec"]["resource"]["resourceVersion"])
    # Its status gives the template higher versions, which the binding does not follow.
    assert before < after <= int(kubectl("get", "deploy", "web", "-o", VERSION))


def test_binding_shows_how_its_policy_evicts_from_failed_clusters(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{BOTH}  failover: {{cluster: {{purgeMode: Never}}}}\n")
    until_scheduled(kubectl)
    assert binding_of(kubectl)["spec"]["failover"] == {"cluster": {"purgeMode": "Never"}}


def test_scheduler_observes_generations_that_need_no_new_decision(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)
    before = binding_of(kubectl)
    kubectl("apply", "-f", "-", stdin=OVERWRITING)
    kubectl.until_true(
        lambda: binding_of(kubectl)["spec"]["conflictResolution"] == "Overwrite",
        lambda: str(binding_of(kubectl)),
    )
    after = binding_of(kubectl)
    assert after["metadata"]["generation"] > before["metadata"]["generation"]
    assert after["status"]["schedulerObservedGeneration"] == after["metadata"]["generation"]
    assert after["spec"]["clusters"] == before["spec"]["clusters"]


def test_scheduler_observes_no_generation_that_it_cannot_place(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)
    kubectl("apply", "-f", "-", stdin=POLICY.replace("[member1, member2]", "[unknown]"))

    def scheduled() -> dict[str, str]:
        conditions: list[dict[str, str]] = binding_of(kubectl)["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == "Scheduled")

    kubectl.until_true(lambda: scheduled()["status"] == "False", lambda: str(scheduled()))
    binding = binding_of(kubectl)
    assert 0 < binding["status"]["schedulerObservedGeneration"] < binding["metadata"]["generation"]


def test_replicas_are_left_out_of_a_binding_that_has_none(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)
    kubectl("scale", "deploy", "web", "--replicas=0")
    kubectl.until_true(
        lambda: "replicas" not in binding_of(kubectl)["spec"], lambda: str(binding_of(kubectl)["spec"])
    )
    assert {tuple(target) for target in binding_of(kubectl)["spec"]["clusters"]} == {("name",)}


def test_binding_keeps_its_spec_when_its_policy_is_deleted(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH.replace(POLICY, OVERWRITING))
    until_scheduled(kubectl)
    before = binding_of(kubectl)
    kubectl("delete", "pp", "web")
    kubectl.until_true(
        lambda: CLAIM not in binding_of(kubectl)["metadata"]["labels"], lambda: str(binding_of(kubectl))
    )
    assert binding_of(kubectl)["spec"] == before["spec"]
    assert {"placement", "conflictResolution", "schedulerName"} <= before["spec"].keys()


def test_binding_of_another_scheduler_waits_and_an_event_gives_the_reason(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH.replace(POLICY, OTHER_SCHEDULER))
    kubectl.until_true(
        lambda: "NotScheduledHere" in kubectl("events", "--for", "deployment/web"),
        lambda: kubectl("get", "events"),
    )
    binding = binding_of(kubectl)
    assert binding["spec"]["schedulerName"] == "volcano"
    assert not binding["spec"].get("clusters")
    assert "schedulerObservedGeneration" not in binding["status"]
    assert "names the scheduler volcano" in kubectl("events", "--for", "deployment/web")


def statuses_of(kubectl: Kubectl) -> list[dict[str, Any]]:
    return [member["status"] for member in binding_of(kubectl)["status"].get("aggregatedStatus", [])]


def test_status_of_a_member_names_its_generation_and_that_of_the_template(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)
    first = {"generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": 1}
    second = {"generation": 2, "observedGeneration": 2, "resourceTemplateGeneration": 2}

    def generations() -> list[dict[str, int]]:
        return [
            {name: status.get(name, 0) for name in first}
            for status in statuses_of(kubectl)
            if status["readyReplicas"] == status["replicas"]
        ]

    kubectl.until_true(lambda: generations() == [first, first], lambda: str(statuses_of(kubectl)))
    kubectl("scale", "deploy", "web", "--replicas=6")
    kubectl.until_true(lambda: generations() == [second, second], lambda: str(statuses_of(kubectl)))
    deployment = cast("dict[str, Any]", kubectl.on("member1").json("deploy", "web"))
    assert (deployment["metadata"]["generation"], deployment["status"]["observedGeneration"]) == (2, 2)
    work = marks.work_name("Deployment", kubectl.namespace, "web")
    (shown,) = cast("dict[str, Any]", kubectl.json("work", work, "-n", "karmada-es-member1"))["status"][
        "manifestStatuses"
    ]
    assert second.items() <= shown["status"].items()


def test_template_observes_a_generation_only_when_all_members_run_it(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    observed = ("get", "deploy", "web", "-o", "jsonpath={.status.observedGeneration}")
    kubectl.until_true(lambda: kubectl(*observed) == "1", lambda: kubectl(*observed))
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=f"{POLICY}  suspension: {{dispatchingOnClusters: {{clusterNames: [member2]}}}}",
    )
    kubectl("scale", "deploy", "web", "--replicas=4")
    kubectl.on("member1").until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    kubectl.until_true(
        lambda: [status["resourceTemplateGeneration"] for status in statuses_of(kubectl)] == [2, 1],
        lambda: str(statuses_of(kubectl)),
    )
    assert kubectl(*observed) == "1"
    kubectl("apply", "-f", "-", stdin=POLICY)
    kubectl.until_true(lambda: kubectl(*observed) == "2", lambda: kubectl(*observed))


def test_queueing_controller_suspends_the_scheduling_of_a_binding(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_scheduled(kubectl)

    def replicas() -> str:
        binding = binding_of(kubectl)
        return (
            f"{binding['spec']['replicas']} {[target['replicas'] for target in binding['spec']['clusters']]}"
        )

    def suspend(*, scheduling: bool) -> None:
        patch = f'{{"spec":{{"suspension":{{"scheduling":{str(scheduling).lower()}}}}}}}'
        kubectl("patch", "rb", "web-deployment", "--type=merge", "-p", patch)

    suspend(scheduling=True)
    kubectl("scale", "deploy", "web", "--replicas=6")
    kubectl.until_true(lambda: replicas().startswith("6 "), replicas)
    assert sum(target["replicas"] for target in binding_of(kubectl)["spec"]["clusters"]) < 6
    assert binding_of(kubectl)["spec"]["suspension"] == {"scheduling": True}
    suspend(scheduling=False)
    kubectl.until_true(lambda: replicas() == "6 [3, 3]", replicas)
    assert "suspension" not in binding_of(kubectl)["spec"]
    kubectl("patch", "rb", "web-deployment", "--type=merge", "-p", '{"spec":{"replicas":1}}', code=1)
    assert "Only spec.suspension.scheduling and .dispatching can be set" in kubectl.errors


def test_each_failed_affinity_group_has_an_event_with_the_message_of_karmada(kubectl: Kubectl) -> None:
    names = ("nowhere", "elsewhere", "member2")
    groups = [{"affinityName": name, "clusterNames": [name]} for name in names]
    policy = {"placement": {"clusterAffinities": groups}, "resourceSelectors": [DEPLOYMENT_WEB]}
    propagation_policy = manifest("policy.karmada.io/v1alpha1", "PropagationPolicy", "web", spec=policy)
    kubectl("apply", "-f", "-", stdin=json.dumps(propagation_policy))
    kubectl("create", "deployment", "web", "--image=nginx")
    query = (
        "get",
        "events",
        "--field-selector",
        "reason=ScheduleBindingFailed",
        "-o",
        "jsonpath={.items[*].message}",
    )
    kubectl.until_true(lambda: kubectl(*query).count("index(1)") == 2, lambda: kubectl(*query))
    binding = f"ResourceBinding({kubectl.namespace}/web-deployment)"
    for index in (0, 1):
        assert f"failed to schedule {binding} with clusterAffiliates index({index}): 0/3 clusters" in kubectl(
            *query
        )
    assert "index(2)" not in kubectl(*query)


def test_policy_shows_the_finalizer_of_the_reference_and_is_deleted_at_once(kubectl: Kubectl) -> None:
    def finalizers() -> str:
        return kubectl("get", "pp", "web", "-o", "jsonpath={.metadata.finalizers}")

    kubectl("apply", "-f", "-", stdin=BOTH)
    own = "karmada.io/propagation-policy-controller"
    assert finalizers() == f'["{own}"]'
    shown = kubectl.json("pp", "web")
    shown["spec"]["priority"] = 5  # type: ignore[index]
    kubectl("replace", "-f", "-", stdin=json.dumps(shown))
    assert finalizers() == f'["{own}"]'
    kubectl("patch", "pp", "web", "--type=merge", "-p", '{"metadata":{"finalizers":["example.io/hold"]}}')
    assert finalizers() == f'["example.io/hold","{own}"]'
    kubectl("delete", "pp", "web", "--wait=false")
    assert finalizers() == '["example.io/hold"]'
    kubectl("patch", "pp", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("get", "pp", "web", code=1)
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl("delete", "pp", "web")
    kubectl("get", "pp", "web", code=1)
