"""The tutorial and the guide's four scenarios: each step is planned, made as planned, and compared with its plan."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.seeds.rebalancing import WEIGHTED, crowded, fill, free_capacity, primary_and_backup, rebalancer
from tests.seeds.steps import shows
from tests.seeds.users import COMMANDS_ONLY, User, text

pytestmark = [pytest.mark.slow, COMMANDS_ONLY]

FOO: Final = "default/foo-deployment"
NGINX: Final = "default/nginx-deployment"
TAINT: Final = "workload-rebalancer-test:NoExecute"
Steps = Callable[..., dict[str, dict[str, int]]]


@pytest.fixture
def step(user: User, tmp_path: Path) -> Steps:
    """Plans a step, makes it and checks it; returns the predicted clusters of each workload that moves."""

    def make_as_planned(*words: str, stdin: str = "") -> dict[str, dict[str, int]]:
        return user.make_as_planned(tmp_path, *words, stdin=stdin)

    return make_as_planned


def applied(step: Steps, manifest: str) -> dict[str, dict[str, int]]:
    return step("-f", "-", stdin=manifest)


@shows("tutorial 1", "tutorial 2", "tutorial 3", "tutorial 5", "tutorial 6", "rebalance scenario 1")
def test_tutorial_happens_as_planned(user: User, step: Steps) -> None:
    assert applied(step, text("tutorial/deployment")) == {FOO: {"member1": 2, "member2": 1}}
    assert step("taint", "member1", TAINT) == {FOO: {"member2": 3}}
    assert step("taint", "member1", f"{TAINT}-") == {}
    # Plan only after the end of the eviction, which would change the result of an earlier plan.
    user.until_left("foo-deployment")
    assert applied(step, text("tutorial/workload-rebalancer")) == {FOO: {"member1": 2, "member2": 1}}
    assert applied(step, text("tutorial/workload-rebalancer-ttl")) == {}


@shows("rebalance scenario 2")
def test_crowded_replicas_spread_as_planned(user: User, step: Steps) -> None:
    fill(user, "100", "88", "76")
    applied(step, crowded(WEIGHTED))
    assert applied(step, text("own/nodes")) == {NGINX: {"member2": 12}}
    free_capacity(user)
    assert applied(step, rebalancer()) == {NGINX: {"member1": 6, "member2": 6}}


@shows("rebalance scenario 3")
def test_aggregated_replicas_gather_as_planned(user: User, step: Steps) -> None:
    fill(user, "96", "92", "76")
    applied(step, crowded("Aggregated"))
    assert applied(step, text("own/nodes")) == {NGINX: {"member1": 4, "member2": 8}}
    free_capacity(user)
    assert applied(step, rebalancer()) == {NGINX: {"member1": 12}}


@shows("rebalance scenario 4")
def test_replicas_return_to_the_primary_cluster_as_planned(user: User, step: Steps) -> None:
    applied(step, primary_and_backup())
    assert applied(step, text("propagation/nginx")) == {NGINX: {"member1": 1}}
    assert step("taint", "member1", "power-failure:NoExecute") == {NGINX: {"member2": 1}}
    user.until_left("nginx-deployment")
    assert step("taint", "member1", "power-failure:NoExecute-") == {}
    assert applied(step, rebalancer()) == {NGINX: {"member1": 1}}
