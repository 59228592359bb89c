"""The groups that a placement's ``workloadAffinity`` forms by labels of workloads."""

from engine.domain.workload_groups import GroupLabel, WorkloadAffinity, WorkloadAffinityTerm

AFFINITY = WorkloadAffinity(
    affinity=WorkloadAffinityTerm(group_by_label_key="app"),
    anti_affinity=WorkloadAffinityTerm(group_by_label_key="track"),
)


def test_workload_is_in_the_groups_of_the_labels_that_it_has() -> None:
    labels = {"app": "shop", "track": "stable", "team": "a"}
    together, apart = GroupLabel("app", "shop", is_apart=False), GroupLabel("track", "stable", is_apart=True)
    assert AFFINITY.groups("default", labels) == [together, apart]
    assert AFFINITY.groups("default", {"track": "stable"}) == [apart]


def test_object_without_a_namespace_is_in_no_group() -> None:
    assert AFFINITY.groups("", {"app": "shop"}) == []
