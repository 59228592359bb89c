"""Limits on the sizes of new objects: the write API refuses larger ones, but folds still read them."""

import msgspec
import pytest

from events import limits, objects
from events.json_values import Json
from events.validation import manifests, sizes

_SELECTOR: Json = {"apiVersion": "apps/v1", "kind": "Deployment"}


def policy(**spec: object) -> Json:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceSelectors": [_SELECTOR], **spec},
    }


def named(count: int) -> list[Json]:
    return [{**_SELECTOR, "name": f"web{index}"} for index in range(count)]


def rebalancer(count: int) -> Json:
    return {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "r"},
        "spec": {"workloads": named(count)},
    }


@pytest.mark.parametrize(
    "value",
    [
        policy(resourceSelectors=named(limits.RULES_MAX)),
        policy(placement={"clusterAffinity": {"clusterNames": ["member1"] * limits.NAMES_MAX}}),
        rebalancer(limits.WORKLOADS_MAX),
        {"apiVersion": "v1", "kind": "ConfigMap", "spec": {"anything": named(limits.RULES_MAX + 1)}},
    ],
    ids=["selectors", "names", "rebalancer", "template"],
)
def test_objects_up_to_the_limits_are_accepted(value: Json) -> None:
    assert list(sizes.faults(value)) == []


@pytest.mark.parametrize(
    ("value", "field", "most"),
    [
        (policy(resourceSelectors=named(1_001)), "spec.resourceSelectors", "1000"),
        (
            policy(placement={"clusterAffinity": {"clusterNames": ["member1"] * 10_001}}),
            "spec.placement.clusterAffinity.clusterNames",
            "10000",
        ),
        (rebalancer(10_001), "spec.workloads", "10000"),
        (
            policy(
                placement={"clusterAffinities": [{"clusterNames": ["member1"] * 100} for _ in range(500)]}
            ),
            "spec",
            "50000",
        ),
    ],
    ids=["selectors", "names", "rebalancer", "all together"],
)
def test_larger_objects_are_refused_with_field_and_limit(value: Json, field: str, most: str) -> None:
    (fault,) = sizes.faults(value)

    assert fault.field == field
    assert fault.reason.endswith(f"more than {most}")


def test_fold_accepts_a_larger_object_already_in_the_log() -> None:
    raw = msgspec.Raw(msgspec.json.encode(policy(resourceSelectors=named(1_001))))

    assert list(manifests.examine(objects.read(raw), raw)) == []
