"""Bindings as tools read them: versions, generations, conditions and the statuses of members."""

from typing import Any, Final, cast

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, POLICY

VERSION: Final = "jsonpath={.metadata.resourceVersion}"
CLAIM: Final = "propagationpolicy.karmada.io/permanent-id"
OVERWRITING: Final = f"{POLICY}  conflictResolution: Overwrite\n"


def binding_of(kubectl: Kubectl) -> dict[str, Any]:
    return cast("dict[str, Any]", kubectl.json("rb", "web-deployment"))


def until_scheduled(kubectl: Kubectl) -> None:
    names = ("get", "rb", "web-deployment", "-o", "jsonpath={.spec.clusters[*].name}")
    kubectl.until_true(lambda: kubectl(*names, code=None) == "member1 member2", lambda: kubectl.errors)


def test_binding_names_the_version_of_its_template_that_it_follows(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    until_scheduled(kubectl)
    patch = ("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"replicas":4}}')
    written = kubectl(*patch, "-o", VERSION)
    kubectl.until_true(
        lambda: binding_of(kubectl)["spec"]["resource"]["resourceVersion"] == written,
        lambda: str(binding_of(kubectl)["spec"]["resource"]),
    )


def test_scheduler_observes_generations_that_need_no_new_decision(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    until_scheduled(kubectl)
    before = binding_of(kubectl)
    kubectl("apply", "-f", "-", given=OVERWRITING)
    kubectl.until_true(
        lambda: binding_of(kubectl)["spec"]["conflictResolution"] == "Overwrite",
        lambda: str(binding_of(kubectl)),
    )
    after = binding_of(kubectl)
    assert after["metadata"]["generation"] > before["metadata"]["generation"]
    assert after["status"]["schedulerObservedGeneration"] == after["metadata"]["generation"]
    assert after["spec"]["clusters"] == before["spec"]["clusters"]


def test_scheduler_observes_no_generation_that_it_cannot_place(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    until_scheduled(kubectl)
    kubectl("apply", "-f", "-", given=POLICY.replace("[member1, member2]", "[unknown]"))

    def scheduled() -> dict[str, str]:
        conditions: list[dict[str, str]] = binding_of(kubectl)["status"]["conditions"]
        return next(each for each in conditions if each["type"] == "Scheduled")

    kubectl.until_true(lambda: scheduled()["status"] == "False", lambda: str(scheduled()))
    binding = binding_of(kubectl)
    assert 0 < binding["status"]["schedulerObservedGeneration"] < binding["metadata"]["generation"]


def test_binding_keeps_its_spec_when_its_policy_is_deleted(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH.replace(POLICY, OVERWRITING))
    until_scheduled(kubectl)
    before = binding_of(kubectl)
    kubectl("delete", "pp", "web")
    kubectl.until_true(
        lambda: CLAIM not in binding_of(kubectl)["metadata"]["labels"], lambda: str(binding_of(kubectl))
    )
    assert binding_of(kubectl)["spec"] == before["spec"]
    assert {"placement", "conflictResolution", "schedulerName"} <= before["spec"].keys()
