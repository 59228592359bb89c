"""Steps of the guide to resource propagation: division of replicas."""

import pytest

from tests.seeds.nginx import BINDING
from tests.seeds.steps import shows
from tests.seeds.users import User, filled

pytestmark = pytest.mark.slow


def scheduling(**fields: str) -> str:
    """Return a policy for all clusters with this replica scheduling."""
    head = filled("propagation/static-weights").partition("    replicaScheduling:")[0]
    lines = [f"      {name}: {value}\n" for name, value in fields.items()]
    return f"{head}    replicaScheduling:\n{''.join(lines)}"


@shows("replicas Duplicated")
def test_duplicated_gives_each_cluster_all_replicas(user: User) -> None:
    user.apply(scheduling(replicaSchedulingType="Duplicated"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=2")

    user.until_placed(BINDING, "member1:2, member2:2, member3:2")


@shows("replicas Divided", "replicas default weights")
def test_divided_replicas_are_weighted_equally_by_default(user: User) -> None:
    user.apply(scheduling(replicaSchedulingType="Divided", replicaDivisionPreference="Weighted"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=6")

    user.until_placed(BINDING, "member1:2, member2:2, member3:2")


@shows("replicas Aggregated")
def test_aggregated_uses_as_few_clusters_as_possible(user: User) -> None:
    user.apply("own/ballast")
    user.until_placed("ballast-deployment", "member1:94, member2:88, member3:82")
    user.until_running("ballast-deployment")
    user.apply(scheduling(replicaSchedulingType="Divided", replicaDivisionPreference="Aggregated"))

    user.apply("own/nodes")

    user.until_placed(BINDING, "member3:12")


@shows("replicas static weights")
def test_equal_static_weights_halve_the_replicas(user: User) -> None:
    user.apply(filled("propagation/static-weights"))
    user.apply("propagation/nginx")
    user("scale", "deployment", "nginx", "--replicas=6")

    user.until_placed(BINDING, "member1:3, member2:3")


@shows("replicas dynamic weights")
def test_dynamic_weights_divide_replicas_by_free_capacity(user: User) -> None:
    user.apply("own/ballast")
    user.until_placed("ballast-deployment", "member1:94, member2:88, member3:82")
    user.until_running("ballast-deployment")
    user.apply(filled("propagation/dynamic-weights"))

    user.apply("own/nodes")

    user.until_placed(BINDING, "member1:2, member2:4, member3:6")


@shows("replicas dynamic before static")
def test_dynamic_weight_takes_precedence_over_static_weights(user: User) -> None:
    user.apply(filled("propagation/static-weights") + "        dynamicWeight: AvailableReplicas\n")
    user.apply("propagation/nginx")
    # Running replicas use capacity, so a cluster with less of it gets fewer new ones.
    user.until_running(BINDING)
    user("scale", "deployment", "nginx", "--replicas=6")

    # The static list names two clusters; equal capacity divides over three.
    user.until_placed(BINDING, "member1:2, member2:2, member3:2")
