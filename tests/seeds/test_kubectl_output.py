"""Steps of the guides that print another text, or have no printed result, with kubectl."""

import pytest

from tests.seeds.nginx import BINDING, DEDICATED, GET, IN_MEMBER2, POD_IN_MEMBER2, PODS
from tests.seeds.users import KUBECTL_ONLY, User, filled, plain

pytestmark = [pytest.mark.slow, KUBECTL_ONLY]


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
    hybrid.until_true(lambda: "ScheduleBindingFailed" in hybrid("describe", "deployment", "nginx"))
    assert "clusters are available" in hybrid("describe", "deployment", "nginx")
    assert hybrid.placed(BINDING) == ""
