"""Limits on the sizes of new objects: the write API refuses larger ones, but folds still read them."""

import pytest

from events import kube_objects, limits
from events.json_values import Json
from events.validation import manifests
from tests.builders.manifests import CONFIG_MAP, manifest, on, policy, raw, rebalancer, selector


def named(count: int) -> list[Json]:
    return [selector(f"web{index}") for index in range(count)]


@pytest.mark.parametrize(
    "value",
    [
        policy("p", None, *named(limits.RULES_MAX)),
        policy("p", on(*["member1"] * limits.NAMES_MAX)),
        rebalancer("r", *named(limits.WORKLOADS_MAX)),
        manifest(*CONFIG_MAP, "c", spec={"anything": named(limits.RULES_MAX + 1)}),
    ],
    ids=["selectors", "names", "rebalancer", "template"],
)
def test_objects_up_to_the_limits_are_accepted(value: Json) -> None:
    assert list(manifests.size_faults(value)) == []


@pytest.mark.parametrize(
    ("value", "field", "most"),
    [
        (policy("p", None, *named(1_001)), "spec.resourceSelectors", "1000"),
        (
            policy("p", on(*["member1"] * 10_001)),
            "spec.placement.clusterAffinity.clusterNames",
            "10000",
        ),
        (rebalancer("r", *named(10_001)), "spec.workloads", "10000"),
        (
            policy("p", {"clusterAffinities": [{"clusterNames": ["member1"] * 100} for _ in range(500)]}),
            "spec",
            "50000",
        ),
    ],
    ids=["selectors", "names", "rebalancer", "all together"],
)
def test_larger_objects_are_refused_with_field_and_limit(value: Json, field: str, most: str) -> None:
    (fault,) = manifests.size_faults(value)

    assert fault.field == field
    assert fault.reason.endswith(f"more than {most}")


def test_fold_accepts_a_larger_object_already_in_the_log() -> None:
    large = raw(policy("p", None, *named(1_001), namespace="default"))

    assert list(manifests.object_faults(kube_objects.read_head(large), large)) == []
