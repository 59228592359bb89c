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
from tests.kubectl.guides import Reader
from tests.kubectl.places import Place
from tests.seeds.test_affinity import (
    BINDING,
    DEDICATED,
    hybrid,
    test_a_constraint_by_region_needs_one_by_cluster,
    test_a_no_execute_taint_drives_out_what_runs,
    test_a_toleration_lets_workloads_onto_a_tainted_cluster,
    test_one_affinity_beside_several_is_refused,
    test_one_cluster_in_each_of_two_regions,
    test_static_weights_ignore_the_constraints,
    test_the_backup_group_is_taken_when_the_primary_fails,
    test_the_clusters_that_a_policy_selects,
    test_the_first_group_of_clusters_that_fits_is_taken,
    test_without_an_affinity_all_clusters_are_candidates,
)
from tests.seeds.test_priority import (
    test_a_name_wins_over_labels_and_those_over_nothing,
    test_a_number_wins_over_none,
    test_a_policy_of_the_namespace_wins_over_one_of_the_cluster,
    test_labels_win_over_nothing,
    test_the_highest_number_wins,
    test_when_all_is_equal_the_first_name_wins,
    test_with_equal_numbers_a_name_wins_over_labels,
)
from tests.seeds.test_propagation import (
    GET,
    IN_MEMBER2,
    POD_IN_MEMBER2,
    PODS,
    test_a_suspended_cluster_keeps_its_state_while_another_is_updated,
    test_from_a_policy_to_two_replicas_elsewhere,
    test_suspended_updates_reach_no_member_until_resumed,
    test_suspension_on_a_cluster_leaves_the_others_their_updates,
    test_what_is_suspended_from_the_start_runs_nowhere,
)
from tests.seeds.test_rebalance import (
    test_a_batch_of_namespaced_and_other_resources,
    test_a_workload_without_a_binding,
    test_an_edit_from_two_workloads_to_a_third,
    test_back_from_the_backup_cluster_to_the_primary,
    test_crowded_into_one_cluster_then_spread_again,
    test_one_workload,
    test_spread_for_want_of_room_then_together_again,
    test_with_60_seconds_or_none_it_stays_and_with_0_it_goes_at_once,
)
from tests.seeds.test_replicas import (
    test_aggregated_in_as_few_clusters_as_have_room,
    test_beside_a_dynamic_weight_the_static_list_is_ignored,
    test_divided_they_add_up_and_without_a_preference_all_weigh_the_same,
    test_duplicated_each_cluster_has_them_all,
    test_room_for_6_12_and_18_divides_12_replicas_into_2_4_and_6,
    test_static_weights_of_one_and_one_are_halves,
)
from tests.seeds.users import User, filled, plain

pytestmark = pytest.mark.slow

REGIONS = {"member1": "us-east-1", "member2": "cn-south-1"}


@pytest.fixture
def user(place: Place, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A reader with kubectl in the namespace ``default``."""
    found = Reader(place.kubectl(home, context="karmada-apiserver"), monkeypatch)
    yield found
    found.clean_up()


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


def test_a_deleted_policy_leaves_what_a_deleted_deployment_takes_away(user: User) -> None:
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


def test_the_deployment_may_come_before_its_policy(user: User) -> None:
    user.apply("propagation/nginx")
    assert plain(user(*GET)) == []

    user.apply("propagation/propagationpolicy-update")

    user.until(IN_MEMBER2, *GET)


def test_a_no_schedule_taint_keeps_new_workloads_out_and_leaves_what_runs(user: User) -> None:
    user.apply(filled("propagation/cluster-names"))
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member1:1, member2:1")

    user.taint("member1", DEDICATED)

    user("scale", "deployment", "nginx", "--replicas=2")
    user.until_placed(BINDING, "member1:2, member2:2")
    user("delete", "deployment", "nginx")
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member2:1")


def test_a_group_that_does_not_fit_is_passed_over(hybrid: User) -> None:  # noqa: F811  # the fixture of this name
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
