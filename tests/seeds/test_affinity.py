"""Steps of the guide to resource propagation: cluster affinity, taints, and spread over regions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.servers import editor
from tests.seeds.nginx import BINDING, DEDICATED
from tests.seeds.steps import shows
from tests.seeds.users import NGINX, User, filled

pytestmark = pytest.mark.slow


@shows("affinity labelSelector", "affinity fieldSelector", "affinity clusterNames", "affinity exclude")
@pytest.mark.parametrize(
    ("policy", "clusters"),
    [
        # member1 and member2 have the label location=us, member3 location=eu.
        ("label-selector-labels", "member1:1, member2:1"),
        ("label-selector-expressions", "member1:1, member2:1"),
        # member1 and member2 are huaweicloud's, member2 is in cn-south-1.
        ("field-selector", "member1:1"),
        ("cluster-names", "member1:1, member2:1"),
        ("exclude", "member2:1"),
    ],
)
def test_policy_selects_clusters_by_affinity(user: User, policy: str, clusters: str) -> None:
    user.apply(filled(f"propagation/{policy}"))
    user.apply("propagation/nginx")

    user.until_placed(BINDING, clusters)


@shows("affinity absent")
def test_all_clusters_are_candidates_without_an_affinity(user: User) -> None:
    user.apply(filled("propagation/cluster-names").partition("  placement:")[0])
    user.apply("propagation/nginx")

    user.until_placed(BINDING, "member1:1, member2:1, member3:1")


@shows("affinity groups")
def test_first_fitting_group_of_clusters_is_used(hybrid: User) -> None:
    hybrid.apply(filled("propagation/affinities-local-and-cloud"))
    hybrid.apply("propagation/nginx")

    hybrid.until_placed(BINDING, "local-member1:1, local-member2:1")


@shows("affinity groups", "affinity none fits")
def test_group_that_does_not_fit_is_skipped(hybrid: User) -> None:
    for number in (1, 2):
        hybrid.taint(f"local-member{number}", "full:NoSchedule")
    hybrid.apply(filled("propagation/affinities-local-and-cloud"))
    hybrid.apply("propagation/nginx")
    hybrid.until_placed(BINDING, "public-cloud-member1:1, public-cloud-member2:1")

    hybrid("delete", "deployment", "nginx")
    for number in (1, 2):
        hybrid.taint(f"public-cloud-member{number}", "full:NoSchedule")
    hybrid.apply("propagation/nginx")
    # The commands print the reason of the binding's condition, kubectl that of its Event.
    reasons = ("NoClusterFit", "ScheduleBindingFailed")
    hybrid.until_true(lambda: any(reason in hybrid("describe", "deployment", "nginx") for reason in reasons))
    assert "clusters are available" in hybrid("describe", "deployment", "nginx")
    assert hybrid.placed(BINDING) == ""


@shows("affinity failover")
def test_backup_group_is_used_when_the_primary_fails(user: User) -> None:
    user.apply(filled("propagation/affinities-primary-and-backup"))
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member1:1")

    user.taint("member1", "power-failure:NoExecute")

    user.until_placed(BINDING, "member2:1")


@shows("affinity both")
def test_affinity_and_affinities_together_are_refused(user: User) -> None:
    both = filled("propagation/affinities-primary-and-backup").replace(
        "    clusterAffinities:", "    clusterAffinity: {clusterNames: [member1]}\n    clusterAffinities:"
    )

    user.apply(both, code=1)

    assert "spec.placement" in user.errors
    assert "clusterAffinities" in user.errors
    assert user("get", "propagationpolicy") == ""


@shows("taint NoSchedule")
def test_no_schedule_taint_affects_new_workloads_only(user: User) -> None:
    user.apply(filled("propagation/cluster-names"))
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member1:1, member2:1")

    user.taint("member1", "dedicated=somebody:NoSchedule")
    assert user.taint("member1", DEDICATED) == "cluster/member1 tainted\n"

    (taint,) = user.taints("member1")
    assert f"{taint['key']}={taint['value']}:{taint['effect']}" == DEDICATED
    user("scale", "deployment", "nginx", "--replicas=2")
    user.until_placed(BINDING, "member1:2, member2:2")
    user("delete", "deployment", "nginx")
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member2:1")


@shows("taint NoExecute")
def test_no_execute_taint_evicts_running_workloads(user: User) -> None:
    user.apply(filled("propagation/cluster-names"))
    user.apply("propagation/nginx")
    user.until_placed(BINDING, "member1:1, member2:1")

    user.taint("member1", DEDICATED.replace("NoSchedule", "NoExecute"))

    user.until_placed(BINDING, "member2:1")
    user.until(["NAME CLUSTER READY STATUS RESTARTS", "nginx member2 1/1 Running 0"], "get", "pod")


@shows("taint tolerated")
def test_toleration_permits_a_tainted_cluster(user: User) -> None:
    user.taint("member1", DEDICATED)

    user.apply(filled("propagation/toleration"))
    user.apply("propagation/nginx")

    user.until_placed(BINDING, "member1:1, member2:1, member3:1")


@pytest.fixture
def two_regions(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """The user of three clusters in two regions: member1 and member2 are in one."""
    regions = {"member1": "us-east-1", "member2": "cn-south-1"}
    for cluster, region in regions.items():
        monkeypatch.setenv("EDITOR", editor(tmp_path, f"text.replace('region: {region}', 'region: test')"))
        # Kubectl writes the group of the kind too.
        assert user("edit", f"cluster/{cluster}").endswith(f"/{cluster} edited\n")
    yield user
    for cluster, region in regions.items():
        monkeypatch.setenv("EDITOR", editor(tmp_path, f"text.replace('region: test', 'region: {region}')"))
        user("edit", f"cluster/{cluster}")


@shows("spread edit region", "spread by region")
def test_one_cluster_is_chosen_in_each_of_two_regions(two_regions: User) -> None:
    assert two_regions("get", "clusters", "-o", "wide").count(" test ") == 2

    two_regions.apply(filled("propagation/spread-by-region"))
    two_regions.apply("propagation/nginx")

    two_regions.until_placed(BINDING, "member1:1, member3:1")


SPREAD = """
    spreadConstraints:
      - {spreadByField: region, minGroups: 2, maxGroups: 2}
"""


@shows("spread and static weights")
def test_static_weights_ignore_spread_constraints(two_regions: User) -> None:
    constraints = f"{SPREAD}      - {{spreadByField: cluster, minGroups: 1, maxGroups: 1}}\n"
    two_regions.apply(filled("propagation/static-weights") + constraints.lstrip("\n"))
    two_regions.apply("propagation/nginx")
    two_regions("scale", "deployment", "nginx", "--replicas=2")

    # Both are in one region: the weights apply, the constraints do not.
    two_regions.until_placed(BINDING, "member1:1, member2:1")


@shows("spread without cluster")
def test_region_constraint_needs_a_cluster_constraint(user: User) -> None:
    policy = filled("propagation/spread-by-region").partition("    spreadConstraints:")[0]

    user.apply(policy + SPREAD.lstrip("\n"), code=1)

    assert "spec.placement.spreadConstraints" in user.errors
    assert "cluster" in user.errors
    assert NGINX.strip() in policy
