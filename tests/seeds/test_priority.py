"""Steps of the guide to resource propagation: precedence of policies."""

import pytest

from tests.seeds.nginx import BINDING
from tests.seeds.steps import shows
from tests.seeds.users import User, filled

pytestmark = pytest.mark.slow


def placed_by(user: User, *policies: str) -> str:
    """Create these policies, then nginx, and return its placement."""
    for policy in policies:
        user.apply(f"propagation/{policy}")
    user.apply("propagation/nginx")
    user.until(["NAME SCHEDULED FULLYAPPLIED", f"{BINDING} True True"], "get", "rb", BINDING)
    return user.placed(BINDING)


@shows("priority explicit")
def test_highest_explicit_priority_wins(user: User) -> None:
    # The document gives the last two the same name, so the last one replaces the one before.
    names = ("lowexplicitpriority", "defaultexplicitpriority")
    created, configured = (user.apply(f"propagation/{name}") for name in names)
    assert created == "propagationpolicy.policy.karmada.io/propagation-low-explicit-priority created\n"
    assert configured == "propagationpolicy.policy.karmada.io/propagation-low-explicit-priority configured\n"

    assert placed_by(user, "highexplicitpriority") == "member1:1"


@shows("priority explicit")
def test_explicit_priority_wins_over_the_default(user: User) -> None:
    default = filled("propagation/defaultexplicitpriority").replace("low-explicit", "default")
    user.apply(default)

    assert placed_by(user, "lowexplicitpriority") == "member2:1"


@shows("priority implicit")
def test_name_wins_over_labels_and_labels_over_an_empty_selector(user: User) -> None:
    assert placed_by(user, "emptymatch", "labelselectormatch", "namematch") == "member3:1"


@shows("priority implicit")
def test_labels_win_over_an_empty_selector(user: User) -> None:
    assert placed_by(user, "emptymatch", "labelselectormatch") == "member2:1"


@shows("priority explicit then implicit")
def test_name_wins_over_labels_at_equal_priority(user: User) -> None:
    assert placed_by(user, "explicit-labelselectormatch", "explicit-namematch") == "member3:1"


@shows("priority alphabetical")
def test_alphabetical_order_decides_between_equal_policies(user: User) -> None:
    assert placed_by(user, "higher-alphabetical", "lower-alphabetical") == "member2:1"


@shows("priority scopes")
def test_propagation_policy_wins_over_cluster_propagation_policy(user: User) -> None:
    wide = filled("propagation/explicit-namematch").replace("kind: Prop", "kind: ClusterProp")
    assert "kind: ClusterPropagationPolicy" in wide
    user.apply(wide)

    assert placed_by(user, "emptymatch") == "member1:1"
