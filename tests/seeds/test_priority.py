"""The guide to resource propagation: which of several policies a Deployment gets."""

import pytest

from tests.seeds.steps import shows
from tests.seeds.users import User, filled

pytestmark = pytest.mark.slow

BINDING = "nginx-deployment"


def placed_by(user: User, *policies: str) -> str:
    """Where nginx goes when these policies are there before it."""
    for policy in policies:
        user.apply(f"propagation/{policy}")
    user.apply("propagation/nginx")
    user.until(["NAME SCHEDULED FULLYAPPLIED", f"{BINDING} True True"], "get", "rb", BINDING)
    return user.placed(BINDING)


@shows("priority explicit")
def test_the_highest_number_wins(user: User) -> None:
    # The document gives the last two one name, so that the last takes the place of the one before.
    names = ("lowexplicitpriority", "defaultexplicitpriority")
    created, configured = (user.apply(f"propagation/{name}") for name in names)
    assert created == "propagationpolicy.policy.karmada.io/propagation-low-explicit-priority created\n"
    assert configured == "propagationpolicy.policy.karmada.io/propagation-low-explicit-priority configured\n"

    assert placed_by(user, "highexplicitpriority") == "member1:1"


@shows("priority explicit")
def test_a_number_wins_over_none(user: User) -> None:
    default = filled("propagation/defaultexplicitpriority").replace("low-explicit", "default")
    user.apply(default)

    assert placed_by(user, "lowexplicitpriority") == "member2:1"


@shows("priority implicit")
def test_a_name_wins_over_labels_and_those_over_nothing(user: User) -> None:
    assert placed_by(user, "emptymatch", "labelselectormatch", "namematch") == "member3:1"


@shows("priority implicit")
def test_labels_win_over_nothing(user: User) -> None:
    assert placed_by(user, "emptymatch", "labelselectormatch") == "member2:1"


@shows("priority explicit then implicit")
def test_with_equal_numbers_a_name_wins_over_labels(user: User) -> None:
    assert placed_by(user, "explicit-labelselectormatch", "explicit-namematch") == "member3:1"


@shows("priority alphabetical")
def test_when_all_is_equal_the_first_name_wins(user: User) -> None:
    assert placed_by(user, "higher-alphabetical", "lower-alphabetical") == "member2:1"


@shows("priority scopes")
def test_a_policy_of_the_namespace_wins_over_one_of_the_cluster(user: User) -> None:
    wide = filled("propagation/explicit-namematch").replace("kind: Prop", "kind: ClusterProp")
    assert "kind: ClusterPropagationPolicy" in wide
    user.apply(wide)

    assert placed_by(user, "emptymatch") == "member1:1"
