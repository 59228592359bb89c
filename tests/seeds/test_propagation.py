"""Steps of the guide to resource propagation: from the first policy to its deletion, and suspension."""

import pytest

from tests.seeds.nginx import GET, IN_MEMBER2, POD_IN_MEMBER2, PODS
from tests.seeds.steps import shows
from tests.seeds.users import COMMANDS_ONLY, NGINX, User, filled, plain, text

pytestmark = pytest.mark.slow

IN_MEMBER1 = plain("""\
NAME CLUSTER READY UP-TO-DATE AVAILABLE AGE ADOPTION
nginx member1 1/1 1 1 52s Y
""")
POD_IN_MEMBER1 = plain("""\
NAME CLUSTER READY STATUS RESTARTS AGE
nginx-6799fc88d8-s7vv9 member1 1/1 Running 0 52s
""")
TWO_IN_MEMBER2 = plain("""\
NAME CLUSTER READY UP-TO-DATE AVAILABLE AGE ADOPTION
nginx member2 2/2 2 2 7m59s Y
""")
PODS_IN_MEMBER2 = plain("""\
NAME CLUSTER READY STATUS RESTARTS AGE
nginx-6799fc88d8-8t8cc member2 1/1 Running 0 8m12s
nginx-6799fc88d8-zpl4j member2 1/1 Running 0 17s
""")


@shows("propagate create", "propagate pods", "propagate update policy", "propagate update deployment")
def test_deployment_is_propagated_moved_and_scaled(user: User) -> None:
    user.apply("propagation/propagationpolicy")
    user.apply("propagation/nginx")
    user.until(IN_MEMBER1, *GET)
    user.until(POD_IN_MEMBER1, *PODS)

    user.apply("propagation/propagationpolicy-update")
    user.until(IN_MEMBER2, *GET)
    user.until(POD_IN_MEMBER2, *PODS)
    first = user.pods()

    user("scale", "deployment", "nginx", "--replicas=2")
    user.until(TWO_IN_MEMBER2, *GET)
    user.until(PODS_IN_MEMBER2, *PODS)
    assert first < user.pods()


@shows("propagate delete policy", "propagate delete deployment")
@COMMANDS_ONLY
def test_deleted_policy_keeps_replicas_and_deleted_deployment_removes_them(user: User) -> None:
    user.apply("propagation/propagationpolicy-update")
    user.apply("propagation/nginx")
    user.until(IN_MEMBER2, *GET)

    deleted = user("delete", "propagationpolicy", "example-policy")
    assert deleted == "propagationpolicy.policy.karmada.io/example-policy deleted\n"
    assert user("get", "propagationpolicy") == ""
    user.until_true(lambda: "example-policy" not in user("get", "rb", "nginx-deployment", "-o", "yaml"))
    assert plain(user(*GET)) == IN_MEMBER2
    assert plain(user(*PODS)) == POD_IN_MEMBER2

    assert user("delete", "deployment", "nginx") == "deployment.apps/nginx deleted\n"
    assert user(*GET) == ""
    user.until([], *PODS)


@shows("propagate order")
@COMMANDS_ONLY
def test_deployment_may_be_created_before_its_policy(user: User) -> None:
    user.apply("propagation/nginx")
    user.until([IN_MEMBER1[0], "nginx <none> 0/1 0 0 N"], *GET)

    user.apply("propagation/propagationpolicy")

    user.until(IN_MEMBER1, *GET)


def _running_in_member2(user: User) -> None:
    """Run nginx in member2, with the policy of the section on suspension."""
    user.apply(filled("propagation/resumed"))
    user.apply("propagation/nginx")
    user.until(IN_MEMBER2, *GET)


@shows("suspension all", "suspension resumed")
def test_suspended_updates_reach_no_member_until_resumed(user: User) -> None:
    _running_in_member2(user)

    user.apply(filled("propagation/suspension"))
    user("scale", "deployment", "nginx", "--replicas=2")
    user.until_placed("nginx-deployment", "member2:2")
    assert plain(user(*PODS)) == POD_IN_MEMBER2

    user.apply(filled("propagation/resumed"))
    user.until(TWO_IN_MEMBER2, *GET)
    user("scale", "deployment", "nginx", "--replicas=1")
    user.until(IN_MEMBER2, *GET)


@shows("suspension all")
def test_initially_suspended_deployment_runs_nowhere(user: User) -> None:
    user.apply(filled("propagation/suspension"))
    user.apply("propagation/nginx")
    user.until_placed("nginx-deployment", "member2:1")

    assert plain(user(*PODS)) == []


@shows("suspension clusters")
def test_suspension_of_one_cluster_does_not_affect_others(user: User) -> None:
    _running_in_member2(user)

    user.apply(filled("propagation/suspension-on-clusters"))
    user("scale", "deployment", "nginx", "--replicas=2")

    user.until(TWO_IN_MEMBER2, *GET)


@shows("suspension clusters", "suspension resumed")
def test_suspended_cluster_keeps_its_state_until_resumed(user: User) -> None:
    # The document's policy excludes the cluster that it suspends; without the exclusion, suspension is
    # visible.
    suspended, resumed = (
        filled(f"propagation/{name}").replace("        - member3\n    #", "    #")
        for name in ("suspension-on-clusters", "resumed")
    )
    both = ["nginx member2 1/1 1 1 Y", "nginx member3 1/1 1 1 Y"]
    user.apply(resumed)
    user.apply("propagation/nginx")
    user.until([IN_MEMBER1[0], *both], *GET)

    user.apply(suspended)
    user("scale", "deployment", "nginx", "--replicas=2")
    user.until([*PODS_IN_MEMBER2, "nginx member3 1/1 Running 0"], *PODS)

    user.apply(resumed)
    user.until([IN_MEMBER1[0], "nginx member2 2/2 2 2 Y", "nginx member3 2/2 2 2 Y"], *GET)
    assert NGINX.strip() in resumed
    assert "member3" in text("propagation/resumed")
