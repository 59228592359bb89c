"""The guide to workload rebalancing, English and Chinese: every result from its own manifests."""

import json
import time
from pathlib import Path
from typing import cast

import pytest
import yaml

from events import times
from tests.cli.servers import editor
from tests.seeds.rebalancing import (
    WEIGHTED,
    crowded,
    fill,
    free_capacity,
    primary_and_backup,
    rebalancer,
)
from tests.seeds.steps import shows
from tests.seeds.users import COMMANDS_ONLY, Json, User, part, text

pytestmark = pytest.mark.slow

DEMO = ("workloadrebalancer", "demo")


@shows("rebalance one", "rebalance batch")
@pytest.mark.parametrize("workloads", ["single", "batch"])
def test_rebalancer_succeeds(user: User, workloads: str) -> None:
    user.apply("own/demo")
    user.until_placed("demo-deploy-deployment", "member1:2")

    user.apply(f"rebalance/{workloads}")

    _assert_like(f"rebalance/{workloads}-successful", finished(user))


@shows("rebalance not found")
def test_rebalancer_of_a_workload_without_binding_fails(user: User) -> None:
    user.apply("rebalance/single")

    _assert_like("rebalance/single-not-found", finished(user))


@shows("rebalance retrying")
@COMMANDS_ONLY
def test_result_is_unset_while_a_workload_is_rescheduled(user: User) -> None:
    user.apply("own/demo")
    user.until_placed("demo-deploy-deployment", "member1:2")
    user.apply("rebalance/single")
    uid = str(part(finished(user), "metadata")["uid"])

    started = next(event for event in decided(user, "rebalance-started") if part(event, "data")["uid"] == uid)
    between = user("get", *DEMO, "-o", "yaml", "--as-of", str(started["number"]))

    _assert_like("rebalance/single-retrying", cast("Json", yaml.safe_load(between)))


@shows("rebalance edit")
def test_edited_rebalancer_updates_its_observed_workloads(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = text("own/demo")
    for number in (1, 3):
        user.apply(demo.partition("---\n")[0].replace("name: demo-deploy", f"name: demo-deploy-{number}"))
    user.apply("---\n".join(demo.split("---\n")[3:]))
    user.until_placed("demo-deploy-3-deployment", "member1:2")
    before, after = text("rebalance/edit-before"), text("rebalance/edit-after")
    user.apply(before.partition("status:")[0])
    _assert_like("rebalance/edit-before", finished(user))

    # In the editor the user replaces the guide's first list by its second one.
    spec = after[after.index("spec:") : after.index("status:")]
    monkeypatch.setenv("EDITOR", editor(tmp_path, f"text.partition('spec:')[0] + {spec!r}"))
    assert user("edit", *DEMO) == "workloadrebalancer.apps.karmada.io/demo edited\n"

    _assert_like("rebalance/edit-after", finished(user, generation=2))


@shows("rebalance ttl set")
@COMMANDS_ONLY
def test_rebalancer_is_deleted_exactly_after_its_ttl(user: User) -> None:
    user.apply(text("rebalance/ttl").replace("AfterFinished: 60", "AfterFinished: 1"))
    until_gone(user)

    finished_ms = part(decided(user, "rebalance-finished")[-1], "data")["finishMs"]
    expired_ms = times.from_text(str(decided(user, "rebalancer-expired")[-1]["time"]))
    waited_ms = expired_ms - int(str(finished_ms))
    # A busy machine decides later than the deadline; the deciders' story of this name has a clock of its own.
    assert 1_000 <= waited_ms < 30_000


@shows("rebalance ttl set", "rebalance ttl unset", "rebalance ttl zero")
def test_rebalancer_is_kept_without_ttl_and_deleted_at_once_with_ttl_0(user: User) -> None:
    for manifest in ("rebalance/single", "rebalance/ttl"):
        user.apply(manifest)
        finished(user, generation=1 if manifest == "rebalance/single" else 2)
    assert part(user.document(*DEMO), "spec")["ttlSecondsAfterFinished"] == 60

    user.apply(text("rebalance/ttl").replace("AfterFinished: 60", "AfterFinished: 0"))

    until_gone(user)


@shows("rebalance scenario 2")
def test_crowded_replicas_spread_again_after_a_rebalance(user: User) -> None:
    fill(user, "100", "88", "76")
    user.apply(crowded(WEIGHTED))
    user.apply("own/nodes")
    user.until_placed("nginx-deployment", "member2:12")

    free_capacity(user)
    assert user.placed("nginx-deployment") == "member2:12"
    user.apply(rebalancer())

    user.until_placed("nginx-deployment", "member1:6, member2:6")


@shows("rebalance scenario 3")
def test_aggregated_replicas_gather_again_after_a_rebalance(user: User) -> None:
    fill(user, "96", "92", "76")
    user.apply(crowded("Aggregated"))
    user.apply("own/nodes")
    user.until_placed("nginx-deployment", "member1:4, member2:8")

    free_capacity(user)
    assert user.placed("nginx-deployment") == "member1:4, member2:8"
    user.apply(rebalancer())

    user.until_placed("nginx-deployment", "member1:12")


@shows("rebalance scenario 4", "affinity failover")
def test_replicas_return_from_the_backup_to_the_primary_cluster(user: User) -> None:
    user.apply(primary_and_backup())
    user.apply("propagation/nginx")
    user.until_placed("nginx-deployment", "member1:1")
    user.taint("member1", "power-failure:NoExecute")
    user.until_placed("nginx-deployment", "member2:1")
    user.until_left("nginx-deployment")
    user("untaint", "member1", "power-failure")
    assert user.placed("nginx-deployment") == "member2:1"

    user.apply(rebalancer())

    user.until_placed("nginx-deployment", "member1:1")


def finished(user: User, generation: int = 1) -> Json:
    """Return the rebalancer once it has finished a generation."""
    deadline = time.monotonic() + 90
    while True:
        shown = user.document(*DEMO)
        status = part(shown, "status")
        # Its finishTime may still be that of the previous generation.
        seen = cast("list[Json]", status.get("observedWorkloads", []))
        is_seen = status.get("observedGeneration") == generation and all(
            "result" in workload for workload in seen
        )
        if "finishTime" in status and is_seen:
            return shown
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def until_gone(user: User) -> None:
    """Wait until the rebalancer is gone."""
    user.until([], "get", "workloadrebalancer")


def decided(user: User, kind: str) -> list[Json]:
    """Return the decisions of a type in the log."""
    lines = user("log", "tail", "--no-follow", "-n", "1000", "--topic", "decisions", "--json").splitlines()
    events = [cast("Json", json.loads(line)) for line in lines]
    return [event for event in events if f".{kind}." in str(event["type"])]


def _assert_like(document: str, actual: Json) -> None:
    """Assert that the object equals the document, except for times, which must exist where the document has them."""
    expected = cast("Json", yaml.safe_load(text(document).replace("  ...\n", "  {}\n")))
    for shown in (expected, actual):
        status = part(shown, "status")
        if "finishTime" in status:
            status["finishTime"] = "a time"
    assert actual["status"] == expected["status"]
    for field in ("name", "generation"):
        assert part(actual, "metadata")[field] == part(expected, "metadata")[field]
    if part(expected, "spec"):
        assert actual["spec"] == expected["spec"]
