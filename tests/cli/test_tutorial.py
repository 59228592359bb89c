"""The rebalancer's tutorial, step by step, on the command line."""

from pathlib import Path

import pytest

from engine.cli.tour import DEPLOYMENT, REBALANCER
from tests.cli.servers import Shell, without_ages

COLUMNS = "NAME CLUSTER READY UP-TO-DATE AVAILABLE ADOPTION"
BOTH = [COLUMNS, "foo member1 2/2 2 2 Y", "foo member2 1/1 1 1 Y"]
GET = ("get", "deploy", "foo")
TAINT = "workload-rebalancer-test:NoExecute"


@pytest.mark.slow
def test_replicas_leave_a_tainted_cluster_and_return_after_a_rebalance(shell: Shell, tmp_path: Path) -> None:
    files = tmp_path / "deployment.yaml", tmp_path / "workload-rebalancer.yaml"
    files[0].write_text(DEPLOYMENT)
    files[1].write_text(REBALANCER)

    # Step 1: create a Deployment.
    assert shell("apply", "-f", str(files[0])).splitlines() == [
        "deployment.apps/foo created",
        "propagationpolicy.policy.karmada.io/default-pp created",
    ]
    shell.until(BOTH, *GET)

    # Step 2: a NoExecute taint on member1, and its removal, which moves nothing back.
    assert shell("taint", "clusters", "member1", TAINT) == "cluster/member1 tainted\n"
    shell.until([COLUMNS, "foo member2 3/3 3 3 Y"], *GET)
    assert shell("taint", "clusters", "member1", f"{TAINT}-") == "cluster/member1 untainted\n"
    assert without_ages(shell(*GET)) == [COLUMNS, "foo member2 3/3 3 3 Y"]

    # Steps 3 to 5: a WorkloadRebalancer, its status, and its effect.
    assert shell("apply", "-f", str(files[1])) == "workloadrebalancer.apps.karmada.io/demo created\n"
    shell.until(BOTH, *GET)
    lines = shell("get", "workloadrebalancer", "demo", "-o", "yaml").splitlines()
    times = [line.split(": ")[1] for line in lines if "creationTimestamp" in line or "finishTime" in line]
    assert all(time.startswith('"20') and time.endswith('Z"') for time in times)
    own = ("creationTimestamp", "finishTime", "resourceVersion", "uid")
    assert [line for line in lines if line.strip().partition(":")[0] not in own] == STATUS.splitlines()
    assert "Result:    member1:2, member2:1" in shell("explain", "deploy", "foo")
    assert "reschedule-triggered" in shell("timeline", "deploy", "foo")

    # Step 6: the rebalancer is deleted after its TTL; 0 replaces the tutorial's 300 seconds.
    files[1].write_text(REBALANCER.replace("spec:", "spec:\n  ttlSecondsAfterFinished: 0"))
    assert shell("apply", "-f", str(files[1])) == "workloadrebalancer.apps.karmada.io/demo configured\n"
    shell.until([], "get", "wr")
    assert without_ages(shell(*GET)) == BOTH
    assert "the log is verified, no findings" in shell("log", "verify")


STATUS = """apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  generation: 1
  name: demo
spec:
  workloads:
  - apiVersion: apps/v1
    kind: Deployment
    name: foo
    namespace: default
status:
  observedGeneration: 1
  observedWorkloads:
  - result: Successful
    workload:
      apiVersion: apps/v1
      kind: Deployment
      name: foo
      namespace: default"""
