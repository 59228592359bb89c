"""The guide to resource propagation: how replicas are divided."""

import pytest

from tests.seeds.steps import shows
from tests.seeds.users import User, filled

pytestmark = pytest.mark.slow

BINDING = "nginx-deployment"


def scheduling(**fields: str) -> str:
    """A policy over all clusters that divides replicas so."""
    head = filled("propagation/static-weights").partition("    replicaScheduling:")[0]
    lines = [f"      {name}: {value}\n" for name, value in fields.items()]
    return f"{head}    replicaScheduling:\n{''.join(lines)}"


@shows("replicas Duplicated")
def test_duplicated_each_cluster_has_them_all(user: User) -> None:
    user.apply(scheduling(replicaSchedulingType="Duplicated"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=2")

    user.until_placed(BINDING, "member1:2, member2:2, member3:2")


@shows("replicas Divided", "replicas default weights")
def test_divided_they_add_up_and_without_a_preference_all_weigh_the_same(user: User) -> None:
    user.apply(scheduling(replicaSchedulingType="Divided", replicaDivisionPreference="Weighted"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=6")

    user.until_placed(BINDING, "member1:2, member2:2, member3:2")


@shows("replicas Aggregated")
def test_aggregated_in_as_few_clusters_as_have_room(user: User) -> None:
    user.apply("own/ballast")
    user.until_placed("ballast-deployment", "member1:94, member2:88, member3:82")
    user.until_running("ballast-deployment")
    user.apply(scheduling(replicaSchedulingType="Divided", replicaDivisionPreference="Aggregated"))

    user.apply("own/nodes")

    user.until_placed(BINDING, "member3:12")


@shows("replicas static weights")
def test_static_weights_of_one_and_one_are_halves(user: User) -> None:
    user.apply(filled("propagation/static-weights"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=6")

    user.until_placed(BINDING, "member1:3, member2:3")


@shows("replicas dynamic weights")
def test_room_for_6_12_and_18_divides_12_replicas_into_2_4_and_6(user: User) -> None:
    user.apply("own/ballast")
    user.until_placed("ballast-deployment", "member1:94, member2:88, member3:82")
    user.until_running("ballast-deployment")
    user.apply(filled("propagation/dynamic-weights"))

    user.apply("own/nodes")

    user.until_placed(BINDING, "member1:2, member2:4, member3:6")


@shows("replicas dynamic before static")
def test_beside_a_dynamic_weight_the_static_list_is_ignored(user: User) -> None:
    user.apply(filled("propagation/static-weights") + "        dynamicWeight: AvailableReplicas\n")
    user.apply("propagation/nginx")
    # What runs takes room, so who has less of it gets fewer of those that come.
    user.until_running(BINDING)
    user("scale", "deployment", "nginx", "--replicas=6")

    # The static list names two clusters; equal room divides over three.
    user.until_placed(BINDING, "member1:2, member2:2, member3:2")
