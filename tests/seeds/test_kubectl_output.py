"""Steps of the guides that print another text, or have no printed result, with kubectl."""

import pytest

from tests.seeds.nginx import GET, IN_MEMBER2, POD_IN_MEMBER2, PODS
from tests.seeds.users import KUBECTL_ONLY, User, plain

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
