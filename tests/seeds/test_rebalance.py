"""The guide to workload rebalancing, English and Chinese: every result from its own manifests."""

import json
import time
from pathlib import Path
from typing import cast

import pytest
import yaml

from engine.kubeapi.values import quantity
from events import times
from events.json_values import at
from tests.cli.servers import editor
from tests.seeds.steps import shows
from tests.seeds.users import Json, User, filled, part, text

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


CROWDED = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: PREFERENCE}
"""
WEIGHTED = "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
BALLAST = ("94", "88", "82")
"""The weights of the ballast; each member has 100 nodes."""
NODE_MILLI_CORES = 32_000
NGINX_NODES = 12


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


def crowded(preference: str) -> str:
    """Return a policy for nginx in two clusters, with this division of replicas."""
    return CROWDED.replace("PREFERENCE", preference)


def primary_and_backup() -> str:
    """Return the guide's policy for nginx in member1, or else in member2."""
    policy = filled("propagation/affinities-primary-and-backup").removesuffix("    #...\n")
    return f"{policy}    replicaScheduling: {{replicaSchedulingType: Divided}}\n"


def rebalancer() -> str:
    """Return the guide's rebalancer, for nginx."""
    return text("rebalance/single").replace("demo-deploy", "nginx")


def finished(user: User, generation: int = 1) -> Json:
    """Return the rebalancer once it has finished a generation."""
    deadline = time.monotonic() + 90
    while True:
        rebalancer = user.document(*DEMO)
        status = part(rebalancer, "status")
        # Its finishTime may still be that of the previous generation.
        seen = cast("list[Json]", status.get("observedWorkloads", []))
        is_seen = status.get("observedGeneration") == generation and all(
            "result" in workload for workload in seen
        )
        if "finishTime" in status and is_seen:
            return rebalancer
        assert time.monotonic() < deadline, rebalancer
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
    for rebalancer in (expected, actual):
        status = part(rebalancer, "status")
        if "finishTime" in status:
            status["finishTime"] = "a time"
    assert actual["status"] == expected["status"]
    for field in ("name", "generation"):
        assert part(actual, "metadata")[field] == part(expected, "metadata")[field]
    if part(expected, "spec"):
        assert actual["spec"] == expected["spec"]


def fill(user: User, *weights: str) -> None:
    """Fill this many nodes of each member."""
    manifest = text("own/ballast")
    for old, new in zip(BALLAST, weights, strict=True):
        manifest = manifest.replace(f"weight: {old}", f"weight: {new}")
    user.apply(manifest)
    user.until_placed("ballast-deployment", ", ".join(f"member{n}:{w}" for n, w in enumerate(weights, 1)))
    user.until_running("ballast-deployment")


def free_capacity(user: User) -> None:
    """Delete the ballast; wait until the members have reported that only nginx takes whole nodes."""
    user("delete", "deploy", "ballast")
    user.until_true(lambda: _nodes_taken(user) == NGINX_NODES, lambda: str(user.taken()))


def _nodes_taken(user: User) -> int:
    """Return how many nodes the members report as taken; their own pods need a small part of one."""
    cpu = (
        quantity.ceil_milli(quantity.nano_units(str(at(summary, part, "cpu") or 0)))
        for summary in user.taken().values()
        for part in summary
    )
    return sum(cpu) // NODE_MILLI_CORES
