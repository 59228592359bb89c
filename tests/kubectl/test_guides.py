"""The guides with kubectl: the steps of the ``reballast`` commands, and the output that the guides show.

The tests are those of ``tests.seeds``, run with another ``user``. Tests that differ are defined here: kubectl
has other command names, and no command for results that only the log contains.
"""

# ruff: noqa: F401  # pytest finds the tests by their names
# pyright: reportUnusedImport=false

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.servers import editor
from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.guides import Reader, until_idle
from tests.seeds.test_affinity import (
    BINDING,
    DEDICATED,
    hybrid,
    test_affinity_and_affinities_together_are_refused,
    test_all_clusters_are_candidates_without_an_affinity,
    test_backup_group_is_used_when_the_primary_fails,
    test_first_fitting_group_of_clusters_is_used,
    test_no_execute_taint_evicts_running_workloads,
    test_one_cluster_is_chosen_in_each_of_two_regions,
    test_policy_selects_clusters_by_affinity,
    test_region_constraint_needs_a_cluster_constraint,
    test_static_weights_ignore_spread_constraints,
    test_toleration_permits_a_tainted_cluster,
)
from tests.seeds.test_priority import (
    test_alphabetical_order_decides_between_equal_policies,
    test_explicit_priority_wins_over_the_default,
    test_highest_explicit_priority_wins,
    test_labels_win_over_an_empty_selector,
    test_name_wins_over_labels_and_labels_over_an_empty_selector,
    test_name_wins_over_labels_at_equal_priority,
    test_propagation_policy_wins_over_cluster_propagation_policy,
)
from tests.seeds.test_propagation import (
    GET,
    IN_MEMBER2,
    POD_IN_MEMBER2,
    PODS,
    test_deployment_is_propagated_moved_and_scaled,
    test_initially_suspended_deployment_runs_nowhere,
    test_suspended_cluster_keeps_its_state_until_resumed,
    test_suspended_updates_reach_no_member_until_resumed,
    test_suspension_of_one_cluster_does_not_affect_others,
)
from tests.seeds.test_rebalance import (
    test_aggregated_replicas_gather_again_after_a_rebalance,
    test_crowded_replicas_spread_again_after_a_rebalance,
    test_edited_rebalancer_updates_its_observed_workloads,
    test_rebalancer_is_kept_without_ttl_and_deleted_at_once_with_ttl_0,
    test_rebalancer_of_a_workload_without_binding_fails,
    test_rebalancer_succeeds,
    test_replicas_return_from_the_backup_to_the_primary_cluster,
)
from tests.seeds.test_replicas import (
    test_aggregated_uses_as_few_clusters_as_possible,
    test_divided_replicas_are_weighted_equally_by_default,
    test_duplicated_gives_each_cluster_all_replicas,
    test_dynamic_weight_takes_precedence_over_static_weights,
    test_dynamic_weights_divide_replicas_by_free_capacity,
    test_equal_static_weights_halve_the_replicas,
)
from tests.seeds.users import User, filled, plain

pytestmark = pytest.mark.slow

REGIONS = {"member1": "us-east-1", "member2": "cn-south-1"}


@pytest.fixture(scope="module", autouse=True)
def _idle(control_plane_on_sqlite: ControlPlane, home_directory: Path) -> None:
    until_idle(control_plane_on_sqlite.kubectl(home_directory))


@pytest.fixture
def user(
    control_plane: ControlPlane, home_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    """A reader with kubectl in the namespace ``default``."""
    reader = Reader(control_plane.kubectl(home_directory, context="karmada-apiserver"), monkeypatch)
    yield reader
    reader.clean_up()


@pytest.fixture
def two_regions(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """The reader of three clusters in two regions, set with ``kubectl edit cluster/member1`` as in the guide."""

    def move(cluster: str, old: str, new: str) -> None:
        monkeypatch.setenv("EDITOR", editor(tmp_path, f"text.replace('region: {old}', 'region: {new}')"))
        assert user("edit", f"cluster/{cluster}") == f"cluster.cluster.karmada.io/{cluster} edited\n"

    for cluster, region in REGIONS.items():
        move(cluster, region, "test")
    yield user
    for cluster, region in REGIONS.items():
        move(cluster, "test", region)


def test_deleted_policy_keeps_replicas_and_deleted_deployment_removes_them(user: User) -> None:
    user.apply("propagation/propagationpolicy-update")
    assert user("create", "deployment", "nginx", "--image", "nginx") == "deployment.apps/nginx created\n"
    user.until(IN_MEMBER2, *GET)

    deleted = user("delete", "propagationpolicy", "example-policy")
    assert deleted.startswith('propagationpolicy.policy.karmada.io "example-policy" deleted')
    assert user("get", "propagationpolicy") == ""
    assert plain(user(*GET)) == IN_MEMBER2
    assert plain(user(*PODS)) == POD_IN_MEMBER2

    assert user("delete", "deployment", "nginx").startswith('deployment.apps "nginx" deleted')
    user.until([], *GET)
    user.until([], *PODS)


def test_deployment_may_be_created_before_its_policy(user: User) -> None:
    user.apply("propagation/nginx")
    assert plain(user(*GET)) == []

    user.apply("propagation/propagationpolicy-update")

    user.until(IN_MEMBER2, *GET)


def test_no_schedule_taint_affects_new_workloads_only(user: User) -> None:
    user.apply(filled("propagation/cluster-names"))
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member1:1, member2:1")

    user.taint("member1", DEDICATED)

    user("scale", "deployment", "nginx", "--replicas=2")
    user.until_placed(BINDING, "member1:2, member2:2")
    user("delete", "deployment", "nginx")
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member2:1")


def test_group_that_does_not_fit_is_skipped(hybrid: User) -> None:  # noqa: F811  # the fixture of this name
    for number in (1, 2):
        hybrid.taint(f"local-member{number}", "full:NoSchedule")
    hybrid.apply(filled("propagation/affinities-local-and-cloud"))
    hybrid.apply("propagation/nginx")
    hybrid.until_placed(BINDING, "public-cloud-member1:1, public-cloud-member2:1")

    hybrid("delete", "deployment", "nginx")
    for number in (1, 2):
        hybrid.taint(f"public-cloud-member{number}", "full:NoSchedule")
    hybrid.apply("propagation/nginx")
    hybrid.until_true(lambda: "ScheduleBindingFailed" in hybrid("describe", "deployment", "nginx"))
    assert "clusters are available" in hybrid("describe", "deployment", "nginx")
    assert hybrid.placed(BINDING) == ""
