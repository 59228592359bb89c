"""The failures of the guide: a cluster or an application fails and recovers; only the rebalance is manual."""

import pytest

from tests.cli.failover_objects import CONFIRMED_S, FAILOVER, REBALANCER, STATEFUL, TAINTS, WEB
from tests.cli.servers import Shell

pytestmark = pytest.mark.slow

COLUMNS = "NAME CLUSTER READY UP-TO-DATE AVAILABLE ADOPTION"


def spread(in_member1: int, in_member2: int) -> list[str]:
    """Return the table of the Deployment with this many replicas in each cluster."""
    rows = [("member1", in_member1), ("member2", in_member2)]
    return [COLUMNS, *(f"web {name} {count}/{count} {count} {count} Y" for name, count in rows if count)]


def test_failed_cluster_is_emptied_and_used_again_after_a_rebalance(shell: Shell) -> None:
    shell.apply(WEB + "---" + TAINTS)
    shell.until(spread(2, 2), "get", "deploy", "web")

    shell("fault", "member1", "down")
    shell.until(spread(0, 4), "get", "deploy", "web", seconds=CONFIRMED_S)
    assert "cluster-judged" in shell("timeline", "cluster", "member1")

    shell("heal", "member1")
    shell.until_true(lambda: shell("get", "clusters").count(" True ") == 3, CONFIRMED_S)
    shell.apply(REBALANCER)
    # The taint is removed once the cluster has been ready for a while; the rebalancer finishes at once.
    shell.until(spread(0, 4), "get", "deploy", "web")
    shell.until_true(lambda: "cluster-untainted" in shell("timeline", "cluster", "member1"), CONFIRMED_S)
    shell.apply(REBALANCER.replace("spread", "spread-again"))
    shell.until(spread(2, 2), "get", "deploy", "web")

    story = shell("timeline", "deploy", "web")
    assert "reason=TaintUntolerated" in story
    assert "reschedule-triggered" in story
    assert "the log is verified, no findings" in shell("log", "verify")
    for kind, name in (("wr", "spread"), ("wr", "spread-again"), ("deploy", "web"), ("pp", "web")):
        shell("delete", kind, name)
    shell("delete", "clustertaintpolicy", "not-ready")


def test_application_that_stays_unhealthy_moves_to_another_cluster(shell: Shell) -> None:
    shell.apply(WEB + FAILOVER)
    shell.until(spread(2, 2), "get", "deploy", "web")

    shell("fault", "member1", "slow", "--amount", "100000")
    shell("scale", "deploy", "web", "--replicas", "8")
    shell.until(spread(0, 8), "get", "deploy", "web", seconds=CONFIRMED_S)
    assert "reason=ApplicationFailure" in shell("timeline", "deploy", "web")

    shell("heal", "member1")
    shell.apply(REBALANCER)
    shell.until(spread(4, 4), "get", "deploy", "web")
    assert "the log is verified, no findings" in shell("log", "verify")
    for kind, name in (("wr", "spread"), ("deploy", "web"), ("pp", "web")):
        shell("delete", kind, name)


def test_failed_application_passes_its_state_on(shell: Shell) -> None:
    # No member has capacity for it, so it is unhealthy in every cluster.
    shell.apply(STATEFUL)
    shell.until_true(lambda: "eviction-started" in shell("timeline", "sts", "flink"), CONFIRMED_S)
    story = shell("timeline", "sts", "flink")
    assert "labels={example.com/job:a1}" in story
    kept = [line for line in story.splitlines() if "work-applied" in line and "example.com/job" in line]
    assert kept, story
    explained = shell("explain", "sts", "flink")
    assert "State: " in explained
    assert "the log is verified, no findings" in shell("log", "verify")
    for kind, name in (("sts", "flink"), ("pp", "flink")):
        shell("delete", kind, name)
